"""The task `sweep`: trains once for each combination, and prints what came of them."""

from repro.errors import NOT_REPRODUCIBLE
from repro.report import sweep_report
from repro.run.sweep import sweep
from repro.tasks.arguments import parse


def run(task: str, arguments: list[str]) -> int:
    """Runs all combinations; the exit code is 1 where a run failed, 3 where two disagree that must not."""
    workspace, overrides = parse(task, arguments)
    found = sweep_report.report(workspace, sweep(workspace, overrides))
    return 1 if found["failed"] else NOT_REPRODUCIBLE if found["disagree"] else 0
