"""The task `compare`: says whether two runs are the same, and where and why they differ."""

from pathlib import Path

from repro.ask import compare
from repro.errors import NOT_REPRODUCIBLE, UsageError


def run(_task: str, arguments: list[str]) -> int:
    """Compares the runs in two folders; the exit code is 0 if they are the same, 3 if not."""
    folders = [Path(argument) for argument in arguments if argument != "--narrow"]
    if len(folders) != 2:
        raise UsageError(f"compare: two runs' folders must be given, not {len(folders)}: ./run.sh compare A B")
    a, b = (compare.read(folder) for folder in folders)
    compare.check_comparable(a, b)
    difference = compare.first_difference(a, b)
    if difference and "--narrow" in arguments:
        from repro.ask.narrow import narrow

        difference.operation = str(narrow(a, b, difference))
    print(compare.told(a, b, difference), flush=True)
    return NOT_REPRODUCIBLE if difference and not difference.only_losses else 0
