"""What a resumed run did not cover, though it is the same."""

from collections.abc import Sequence
from hashlib import sha256

from repro.compare.pairs import Pair
from repro.record.lines import Process
from repro.record.record import Record

ONE = sha256(b"1").hexdigest()
BORDER, WINDOW, TWICE = "the beginning of another epoch", "a stop within an accumulation window", "a second resume"


def uncovered(whole: Record, resumed: Sequence[Pair], twice: bool) -> str:
    """As the end of a line; `twice`: whether something went on from a run that had gone on itself."""
    begun = [borders(process) for process in whole.processes]
    windows = [_has_windows(process) for process in whole.processes]
    missing = []
    if any(begun) and not any(_crosses(pair, found or []) for pair in resumed for found in begun):
        missing.append(BORDER)
    if any(windows) and not any(_in_a_window(pair) for pair in resumed):
        missing.append(WINDOW)
    missing += [] if twice else [TWICE]
    unseen = ["where epochs begin"] if None in begun else []
    unseen += ["accumulation windows"] if None in windows else []
    return "".join(f"; not {how}: {', '.join(what)}" for how, what in (("covered", missing), ("seen", unseen)) if what)


def borders(process: Process) -> list[int] | None:
    """The first step of each pass through the data but the first, where a loader is seen."""
    passes: dict[int, list[int]] = {}
    for step, line in sorted(process.lines.items()):
        for samples in line.samples.values():
            passes.setdefault(samples.epoch, []).append(step)
    begun = sorted(steps[0] for steps in passes.values() if len({*steps}) > 1 or len(steps) == 1)  # else an evaluation
    return begun[1:] if passes else None


def _has_windows(process: Process) -> bool | None:
    """Whether a step has several backward passes, or batches; None where neither is seen."""
    counts = [_count(process, step) for step in process.steps if step]
    return None if None in counts or not counts else any(count not in (ONE, "1") for count in counts)


def _count(process: Process, step: int) -> str | None:
    """The number of a step's backward passes, as its hash, or else of its batches."""
    hashes = process.steps.get(step, {})
    passes = hashes.get("scalars", {}).get("backward passes")
    batches = {name.partition(".")[0] for name in hashes.get("batch", {})}
    return passes or (str(len(batches)) if batches else None)


def _crosses(pair: Pair, borders: Sequence[int]) -> bool:
    """Whether another epoch begins after the first step that was resumed, as far as both go."""
    return any(pair.offset + 1 < border <= max(pair.steps(), default=0) for border in borders)


def _in_a_window(pair: Pair) -> bool:
    """Whether the first step of a resumed run has fewer passes than that of the other."""
    ours, theirs = _count(pair.a, pair.offset + 1), _count(pair.b, 1)
    if ours is None or theirs is None:
        return False
    batches = ours.isdecimal() and theirs.isdecimal() and len(ours) < 64  # it may pass over old ones, and so have more
    return int(theirs) < int(ours) if batches else ours != theirs
