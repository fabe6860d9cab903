"""The task `report`: a page of what `verify` and `benchmark` found, here and elsewhere, or of a sweep.

`verify` of one's own command has no workspace: the page is made where its runs are.
"""

import sys
from pathlib import Path

from rich.console import Console

from repro.console import wide_console
from repro.report import report, speed_tables, sweep_report, tables
from repro.tasks.arguments import parse
from repro.tasks.commands import RECORDS


def run(task: str, arguments: list[str]) -> int:
    """Makes the page and prints its tables. It reads results alone, so no configuration can keep it from that."""
    if not any(argument.startswith("--workspace") for argument in arguments) and RECORDS.is_dir():
        arguments = [f"--workspace={RECORDS}", *arguments]
    workspace, files = parse(task, arguments, files=True)
    if len(files) == 1 and Path(files[0]).is_dir():
        sweep_report.report(workspace, Path(files[0]))
        return 0
    made = report.write(workspace, files)
    if made.sections:
        tables.show(made, Console())
    for content in made.benchmarks:
        speed_tables.show(content, wide_console())
    print(f"report in {workspace / 'report' / 'report.html'}", file=sys.stderr)
    return 0
