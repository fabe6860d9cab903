"""The command `report`: results as a page."""

import argparse
import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from repro.commands.command_options import RECORDS
from repro.commands.parser import Parser
from repro.commands.workspace import folder
from repro.errors import ReproError, UsageError
from repro.text import printable

if TYPE_CHECKING:
    from repro.report.levels import Levels

EPILOG = f"""Without files, the page covers all results files of the workspace, or of {RECORDS}/,
and is written to report/ there. With files and no workspace, it is written to report/
next to the first file. An audit.json beside results.json adds to its level."""


def parser() -> Parser:
    made = Parser(
        "report",
        "make a page from results of verify and benchmark, also of several machines",
        (
            "repro report [--to=DIR] [--badge=FILE.svg] [FILE.json ...]",
            "repro report [--to=DIR] SWEEP",
            "repro report [--to=DIR] --workspace=DIR",
        ),
        run,
        epilog=EPILOG,
    )
    made.add_argument(
        "files",
        nargs="*",
        type=Path,
        metavar="FILE.json | SWEEP",
        help="results.json of verify, audit.json of audit, benchmark.json of benchmark, or the folder of a sweep (WORKSPACE/outputs/sweep/TIME)",
    )
    made.add_argument("--to", type=Path, metavar="DIR", help="folder for the page")
    made.add_argument("--badge", type=Path, metavar="FILE.svg", help="write the level as a badge, for a README")
    made.add_argument("--workspace", metavar="DIR", help="workspace of the reference trainers")
    card = "write the fingerprint, level and versions into the front matter of this model card"
    made.add_argument("--model-card", type=Path, metavar="CARD.md", help=card)
    bill = "write them to this new file, as an ML-BOM (CycloneDX 1.7)"
    made.add_argument("--bom", type=Path, metavar="FILE.json", help=bill)
    return made


def run(options: argparse.Namespace) -> int:
    """Makes the page and prints its tables. It reads results alone, so no configuration can keep it from that."""
    workspace, to = _places(options)
    if options.badge is not None and (options.badge.is_dir() or not options.badge.absolute().parent.is_dir()):
        raise UsageError(f"report: --badge {options.badge}: cannot be written; name a file in a folder that exists")
    if len(options.files) == 1 and options.files[0].is_dir():
        for option, path in {
            "--badge": options.badge,
            "--model-card": options.model_card,
            "--bom": options.bom,
        }.items():
            if path is not None:
                raise UsageError(f"report: {option} {path}: a sweep has no level; name a results.json")
        from repro.report import sweep_report

        sweep_report.report(to, options.files[0])
        return 0
    from repro.console import Screen, wide_console
    from repro.report import report, speed_tables, tables

    made = report.write(workspace, options.files, to, options.badge)
    if made.sections:
        tables.show(made, Screen())
    for content in made.benchmarks:
        speed_tables.show(content, wide_console())
    print(printable(f"report in {to / 'report.html'}"), file=sys.stderr)
    if options.badge is not None:
        print(printable(f"badge in {options.badge}"), file=sys.stderr)
    _publish(options, made.levels)
    return 0


def _publish(options: argparse.Namespace, trainings: "list[Levels]") -> None:
    """Writes the model card and the bill of materials that are asked for."""
    if options.model_card is not None:
        with _extra("--model-card", "card"):
            from repro.report import model_card
        model_card.update(options.model_card, trainings)
        print(printable(f"the facts of the training are in {options.model_card}"), file=sys.stderr)
    if options.bom is not None:
        with _extra("--bom", "bom"):
            from repro.report import bom
        bom.write(options.bom, trainings)
        print(printable(f"bill of materials in {options.bom}"), file=sys.stderr)


@contextlib.contextmanager
def _extra(option: str, extra: str) -> Iterator[None]:
    """Says how to install what an import misses. ReproError in place of ModuleNotFoundError."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ReproError(
            f"report: {option} needs the package {error.name}; install it with: pip install 'repro-bits[{extra}]'"
        ) from None


def _places(options: argparse.Namespace) -> tuple[Path, Path]:
    """The folder whose results are reported where no file is named, and the folder of the page."""
    if options.workspace is not None:
        workspace = folder("report", options.workspace)
    elif options.files:
        first: Path = options.files[0]
        workspace = first if first.is_dir() else first.parent
    elif RECORDS.is_dir():
        workspace = RECORDS
    else:
        raise UsageError("report: no results; name results files, or the folder of them with --workspace=DIR")
    to = options.to or workspace / "report"
    if to.exists() and not to.is_dir():
        raise UsageError(f"report: {to} is not a folder; name another with --to")
    return workspace, to
