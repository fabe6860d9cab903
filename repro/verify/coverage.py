"""Parts of resuming that an answer *same* does not cover."""

from collections.abc import Sequence

from repro.compare.pairs import Pair
from repro.record.lines import CLOSURE, PASSES, SCALARS, Process
from repro.record.record import Record

BORDER, WINDOW, TWICE = "the beginning of another epoch", "a stop within an accumulation window", "a second resume"
CHECKPOINT = "a checkpoint within an accumulation window"


def uncovered(whole: Record, resumed: Sequence[Pair], twice: bool, within: bool = False) -> str:
    """Describes what resuming did not cover, as the end of a line. `twice`: something resumed from a resumed run.

    `within`: a run was stopped between two backward passes of a step; what it resumed from may be older.
    """
    begun = [borders(process) for process in whole.processes]
    windows = [has_windows(process) for process in whole.processes]
    resumed_within = any(_in_a_window(pair) for pair in resumed)
    missing = []
    if any(begun) and not any(_crosses(pair, found or []) for pair in resumed for found in begun):
        missing.append(BORDER)
    if any(windows) and not within and not resumed_within:
        missing.append(WINDOW)
    missing += [] if twice else [TWICE]
    unseen = ["where epochs begin"] if None in begun else []
    unseen += ["accumulation windows"] if None in windows else []
    unseen += [CHECKPOINT] if within and not resumed_within else []
    return "".join(f"; not {how}: {', '.join(what)}" for how, what in (("covered", missing), ("seen", unseen)) if what)


def epochs(process: Process) -> list[int] | None:
    """The first step of each pass through the data, where a loader is seen.

    A pass of which all batches came between two steps is none, but an evaluation.
    """
    passes: dict[int, list[int]] = {}
    for step, line in sorted(process.lines.items()):
        for samples in line.samples.values():
            passes.setdefault(samples.epoch, []).append(step)
    return sorted({steps[0] for steps in passes.values() if len({*steps}) > 1 or len(steps) == 1}) if passes else None


def borders(process: Process) -> list[int] | None:
    """The first step of each epoch but the first, where a loader is seen."""
    begun = epochs(process)
    return begun and begun[1:]


def has_windows(process: Process) -> bool | None:
    """True if a step has several backward passes, or batches; None if neither is seen."""
    counts = [_count(process, step) for step in process.steps if step]
    known = [count for count in counts if count is not None]
    return any(count > 1 for count in known) if known and len(known) == len(counts) else None


def _count(process: Process, step: int) -> int | None:
    """The number of a step's backward passes, a closure's as one, or else of its batches."""
    hashes = process.steps.get(step, {})
    passes, closure = (_number(process, hashes.get(SCALARS, {}).get(name, "")) for name in (PASSES, CLOSURE))
    batches = {name.partition(".")[0] for name in hashes.get("batch", {})}
    return passes - max(closure - 1, 0) or len(batches) or None


def _number(process: Process, code: str) -> int:
    """The number that a hash is of; 0 of none."""
    text = process.texts.get(code, "")
    return int(text) if text.isdecimal() else 0


def _crosses(pair: Pair, borders: Sequence[int]) -> bool:
    """True if another epoch begins after the first resumed step, as far as both go."""
    return any(pair.offset + 1 < border <= max(pair.steps(), default=0) for border in borders)


def _in_a_window(pair: Pair) -> bool:
    """True if the first step of a resumed run has fewer passes than the other's; it may have more old batches."""
    ours, theirs = _count(pair.a, pair.offset + 1), _count(pair.b, 1)
    return ours is not None and theirs is not None and theirs < ours
