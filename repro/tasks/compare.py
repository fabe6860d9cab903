"""The task `compare`: says whether two runs or records are the same, and where and why they differ."""

from pathlib import Path

from repro.ask import channels, compare, kept, reasons, record
from repro.console import log_to_console
from repro.errors import NOT_REPRODUCIBLE, UsageError
from repro.show import records


def run(_task: str, arguments: list[str]) -> int:
    """Compares what two folders hold; the exit code is 0 if they are the same, 3 if not."""
    folders = [Path(argument) for argument in arguments if argument != "--narrow"]
    if len(folders) != 2:
        raise UsageError(f"compare: two runs' folders must be given, not {len(folders)}: compare A B")
    narrow = "--narrow" in arguments
    if any(record.is_one(folder) for folder in folders):
        return _records(folders[0], folders[1], narrow)
    return _runs(folders[0], folders[1], narrow)


def _runs(first: Path, second: Path, narrow: bool) -> int:
    """Two runs of the suite."""
    a, b = (compare.read(folder) for folder in (first, second))
    compare.check_comparable(a, b)
    difference = compare.first_difference(a, b)
    if difference and narrow:
        from repro.ask.narrow import narrow as narrowed

        difference.operation = str(narrowed(a, b, difference))
    print(compare.told(a, b, difference), flush=True)
    return NOT_REPRODUCIBLE if difference and not difference.only_losses else 0


def _records(first: Path, second: Path, narrow: bool) -> int:
    """Two records of a command; the one that goes on where the other was stopped comes second."""
    a, b = (record.read(folder) for folder in (first, second))
    channels.check_comparable(a, b)
    if any(pair.offset for pair in channels.pairs(b, a)) and not any(pair.offset for pair in channels.pairs(a, b)):
        a, b = b, a
    found = channels.first_difference(a, b)
    why, far = (reasons.reason(found), kept.distance(a, b, found)) if found else (None, None)
    print(records.told(a, b, found, why, far, reasons.differing_facts(a, b)), flush=True)
    if found and narrow:
        from repro.ask.rerun import narrowed

        log_to_console()
        print(f"  begins  {narrowed(a, b, found)}", flush=True)
    return NOT_REPRODUCIBLE if found else 0
