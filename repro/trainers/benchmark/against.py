"""Comparison of two benchmarks.

What became slower or faster beyond the noise, and what cannot be compared.
"""

from dataclasses import dataclass

from repro.trainers.benchmark import intervals
from repro.trainers.benchmark.cells import REPEAT_BITS
from repro.trainers.benchmark.results import Benchmark, Row, Summary
from repro.verify.results import Cpu, Gpu

SLOWER, FASTER, EQUAL, INCOMPARABLE = "slower", "faster", "no difference beyond the noise", "incomparable"
MACHINE = ("cpu", "gpu", "platform")
SETTINGS = ("model", "optimizer", "dataset")


@dataclass(frozen=True)
class SpeedVerdict:
    """The verdict on a cell."""

    cell: str
    verdict: str
    ratio: Summary | None
    """The ratio new / old of the seconds per epoch, if they can be compared."""
    why: str
    """The reason that it is incomparable; else a note on equal bits, if that is known, and on the code."""


def compare(old: Benchmark, new: Benchmark) -> list[SpeedVerdict]:
    """A verdict on every cell of either benchmark, the old one's cells first."""
    old_rows, new_rows = ({row.cell: row for row in content.rows} for content in (old, new))
    reason = _obstacle_to_all(old, new)
    verdicts = []
    for cell in dict.fromkeys([*old_rows, *new_rows]):
        why = reason or _obstacle(old_rows.get(cell), new_rows.get(cell))
        if why:
            verdicts.append(SpeedVerdict(cell, INCOMPARABLE, None, why))
            continue
        ratio = intervals.ratio_of_medians(list(new.times(cell).values()), list(old.times(cell).values()))
        verdict, notes = _verdict(ratio), [_bits(old_rows[cell], new_rows[cell])]
        if verdict != EQUAL and _is_same_code(old, new):
            notes.append("the same commit: the machine or its settings changed")
        verdicts.append(SpeedVerdict(cell, verdict, ratio, ", ".join(filter(None, notes))))
    return verdicts


def _verdict(ratio: Summary) -> str:
    if not intervals.excludes_one(ratio):
        return EQUAL
    return SLOWER if ratio.median > 1 else FASTER


def _obstacle_to_all(old: Benchmark, new: Benchmark) -> str | None:
    """The difference between two benchmarks that makes all of their times incomparable, or None."""
    for part, keys in (("machine", MACHINE), ("settings", SETTINGS)):
        for key in keys:
            before, now = (getattr(getattr(content, part), key) for content in (old, new))
            if before != now:
                return f"another {part}: {key} {_brief(before)} and {_brief(now)}"
    return None


def _is_same_code(old: Benchmark, new: Benchmark) -> bool:
    dirty = old.source.dirty or new.source.dirty
    return old.source.commit == new.source.commit is not None and not dirty


def _obstacle(old: Row | None, new: Row | None) -> str | None:
    """The reason that two rows cannot be compared, or None."""
    if old is None or new is None:
        return "only in the old benchmark" if new is None else "only in the new benchmark"
    if old.seconds_per_epoch is None or new.seconds_per_epoch is None:
        return "it failed in one of them"
    fewest = min(old.seconds_per_epoch.n, new.seconds_per_epoch.n)
    if fewest < intervals.ENOUGH:
        return f"{fewest} samples are too few: raise minutes until there are {intervals.ENOUGH} or more"
    if old.version != new.version:
        return f"another version of the framework: {old.version} and {new.version}"
    return None


def _bits(old: Row, new: Row) -> str:
    """Compares the bits of rows that repeat them: a faster answer may be another one."""
    if old.numerics not in REPEAT_BITS or old.steps != new.steps:
        return ""
    return "the same bits" if old.fingerprints == new.fingerprints else "OTHER BITS than before"


def _brief(value: str | Cpu | list[Gpu]) -> str:
    devices = value if isinstance(value, list) else [value]
    names = [device if isinstance(device, str) else device.model or "unknown" for device in devices]
    text = ", ".join(names) or "none"
    return text if len(text) <= 60 else f"{text[:59]}…"
