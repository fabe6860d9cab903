"""The command `compare`: two runs or records, bit by bit."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from repro.commands.parser import Parser
from repro.errors import INCONCLUSIVE, NOT_REPRODUCIBLE, UsageError
from repro.text import printable

if TYPE_CHECKING:
    from repro.compare.comparison import Comparison


def parser() -> Parser:
    made = Parser(
        "compare",
        "say whether two runs are the same, where they first diverge, and why",
        (
            "repro compare [--narrow] [--bisect] [--trust] A B",
            "repro compare --port [--pairs FILE] [--page FILE.html] A B",
        ),
        run,
        epilog="Exit codes: 0 the same; 3 different; 4 inconclusive.",
    )
    made.add_argument(
        "folders",
        nargs="*",
        type=Path,
        metavar="A B",
        help="folders of two records, or of two runs of the reference trainers (WORKSPACE/outputs/FRAMEWORK/TIME)",
    )
    made.add_argument(
        "--narrow", action="store_true", help="rerun the step where they first differ, and name the operation"
    )
    bisect = "rerun A with options, variables and versions of B, and name those that make the difference"
    made.add_argument("--bisect", action="store_true", help=bisect)
    made.add_argument(
        "--trust",
        action="store_true",
        help="with --narrow or --bisect: run commands that another user or machine recorded",
    )
    made.add_argument(
        "--port",
        action="store_true",
        help="compare two frameworks: match the weights of two records made with `record --modules 1`, and name what first does not agree",
    )
    made.add_argument(
        "--pairs",
        type=Path,
        metavar="FILE",
        help="with --port: weights that belong together, a line NAME_OF_A = NAME_OF_B for each",
    )
    made.add_argument("--page", type=Path, metavar="FILE.html", help="with --port: write a page, layer beside layer")
    return made


def run(options: argparse.Namespace) -> int:
    """Compares what two folders hold; the exit code is 0 if they are the same, 3 if not, 4 if that is inconclusive."""
    if len(options.folders) != 2:
        raise UsageError(f"compare: two runs' folders must be given, not {len(options.folders)}: compare A B")
    if options.trust and not options.narrow and not options.bisect:
        raise UsageError("compare: --trust goes with --narrow or --bisect; nothing is run without")
    if (options.pairs or options.page) and not options.port:
        raise UsageError("compare: --pairs and --page go with --port, which compares two frameworks")
    if options.port:
        return _port(options)
    from repro.console import log_to_console
    from repro.record.process import stop_as_interrupted
    from repro.report import comparison
    from repro.trainers.verify.recorded import compare

    result = compare(*options.folders)
    print(comparison.told(result), flush=True)
    if result.found and (options.narrow or options.bisect):
        if result.layouts:
            raise UsageError(
                "compare: --narrow and --bisect compare runs of as many ranks, which share batches and tensors alike"
            )
        log_to_console()
        stop_as_interrupted()
    if result.found and options.bisect:
        for name, line in _deciding_facts(result, options.trust):
            print(printable(f"  {name:<8}{line}"), flush=True)
    if result.found and options.narrow:
        print(printable(f"  begins  {_first_operation(result, options.trust)}"), flush=True)
    if result.found:
        return NOT_REPRODUCIBLE
    return INCONCLUSIVE if result.unseen else 0


def _port(options: argparse.Namespace) -> int:
    """Compares two records of different frameworks."""
    if options.narrow or options.bisect:
        raise UsageError("compare: --narrow and --bisect run commands again; --port compares what two records hold")
    from repro.compare.comparison import place
    from repro.port.port import compare
    from repro.record import record
    from repro.report import port, port_page

    a, b = (record.read(place(folder) or folder) for folder in options.folders)
    result = compare(a, b, options.pairs)
    print(port.told(result), flush=True)
    if options.page:
        port_page.write(result, options.page)
    if result.first:
        return NOT_REPRODUCIBLE
    return INCONCLUSIVE if result.unseen else 0


def _first_operation(result: "Comparison", trusted: bool) -> str:
    """The operation that the difference begins with."""
    from repro.trainers.verify.recorded import TrainerRun

    assert result.found is not None
    if isinstance(result.a, TrainerRun) and isinstance(result.b, TrainerRun):
        from repro.trainers.verify.narrow import narrow

        return narrow(result.a, result.b, result.found)
    from repro.compare.rerun_command import narrowed

    return narrowed(result.a, result.b, result.found, trusted)


def _deciding_facts(result: "Comparison", trusted: bool) -> list[tuple[str, str]]:
    """The smallest set of facts that makes the difference, and what that rests on, as lines with a word before each."""
    from repro.compare.bisect import bisected
    from repro.trainers.verify.recorded import TrainerRun

    assert result.found is not None
    if isinstance(result.a, TrainerRun):
        raise UsageError("compare: --bisect runs commands again; of the reference trainers use --narrow")
    return bisected(result.a, result.b, result.found, trusted)
