"""The command `compare`: two runs or records, bit by bit."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from repro.errors import INCONCLUSIVE, NOT_REPRODUCIBLE, UsageError
from repro.tasks.parser import Parser
from repro.text import printable

if TYPE_CHECKING:
    from repro.compare.comparison import Comparison


def parser() -> Parser:
    made = Parser(
        "compare",
        "say whether two runs are the same, where they first diverge, and why",
        ("repro compare [--narrow [--trust]] A B",),
        run,
        epilog="Exit code 0: the same; 3: they differ; 4: inconclusive.",
    )
    made.add_argument(
        "folders",
        nargs="*",
        type=Path,
        metavar="A B",
        help="folders of two records, or of two runs of the reference trainers, WORKSPACE/outputs/FRAMEWORK/TIME",
    )
    made.add_argument(
        "--narrow", action="store_true", help="rerun the steps where they first differ, to name the operation"
    )
    made.add_argument(
        "--trust", action="store_true", help="with --narrow: run what another user or another machine recorded"
    )
    return made


def run(options: argparse.Namespace) -> int:
    """Compares what two folders hold; the exit code is 0 if they are the same, 3 if not, 4 if that cannot be told."""
    if len(options.folders) != 2:
        raise UsageError(f"compare: two runs' folders must be given, not {len(options.folders)}: compare A B")
    if options.trust and not options.narrow:
        raise UsageError("compare: --trust goes with --narrow; nothing is run without")
    from repro.compare.comparison import compare
    from repro.console import log_to_console
    from repro.record.process import stop_as_interrupted
    from repro.report import comparison

    result = compare(*options.folders)
    print(comparison.told(result), flush=True)
    if result.found and options.narrow:
        log_to_console()
        stop_as_interrupted()
        print(printable(f"  begins  {_first_operation(result, options.trust)}"), flush=True)
    if result.found:
        return NOT_REPRODUCIBLE
    return INCONCLUSIVE if result.unseen else 0


def _first_operation(result: "Comparison", trusted: bool) -> str:
    """The operation that the difference begins with."""
    from repro.record import trainer_run

    assert result.found is not None
    if isinstance(result.a, trainer_run.Run) and isinstance(result.b, trainer_run.Run):
        from repro.compare.rerun_trainer import narrow

        return str(narrow(result.a, result.b, result.found))
    from repro.compare.rerun_command import narrowed

    return narrowed(result.a, result.b, result.found, trusted)
