"""The task `compare`: says whether two runs or records are the same, and where and why they differ."""

from pathlib import Path

from repro.compare.comparison import Comparison, compare
from repro.console import log_to_console
from repro.errors import NOT_REPRODUCIBLE, UsageError
from repro.record import trainer_run
from repro.report import comparison


def run(_task: str, arguments: list[str]) -> int:
    """Compares what two folders hold; the exit code is 0 if they are the same, 3 if not."""
    folders = [Path(argument) for argument in arguments if argument != "--narrow"]
    if len(folders) != 2:
        raise UsageError(f"compare: two runs' folders must be given, not {len(folders)}: compare A B")
    found = compare(*folders)
    print(comparison.told(found), flush=True)
    if found.found and "--narrow" in arguments:
        log_to_console()
        print(f"  begins  {_narrowed(found)}", flush=True)
    return NOT_REPRODUCIBLE if found.found else 0


def _narrowed(found: Comparison) -> str:
    """With which operation the difference begins."""
    assert found.found is not None
    if isinstance(found.a, trainer_run.Run) and isinstance(found.b, trainer_run.Run):
        from repro.compare.rerun_trainer import narrow

        return str(narrow(found.a, found.b, found.found))
    from repro.compare.rerun_command import narrowed

    return narrowed(found.a, found.b, found.found)
