"""Comparison of two records: where they diverge, why, and by how much."""

import shlex
from dataclasses import dataclass, field
from pathlib import Path

from repro.compare import difference, distance, incomplete, layouts, operations, reasons
from repro.compare.difference import Difference
from repro.compare.distance import Distance, Point
from repro.compare.facts import Cause, causes
from repro.compare.pairs import pairs
from repro.compare.reasons import Reason
from repro.record import record
from repro.record.record import Record


@dataclass
class Comparison:
    """The first difference of two records, and its explanation; empty if they are the same."""

    a: Record
    b: Record
    found: Difference | None
    why: Reason | None = None
    far: Distance | None = None
    """The distance of the first array that differs, if both were kept."""
    growth: list[Point] = field(default_factory=list)
    facts: list[Cause] = field(default_factory=list)
    """Recorded facts that differ, most likely cause first."""
    layouts: tuple[str, str] | None = None
    """How ranks share the training, of both records, if that differs: all ranks of a record are one process here."""
    begins: str | None = None
    """The operation that the difference begins with, where both records hold those of the step."""
    losses: str | None = None
    """The first of the reported losses that differs, in words, if losses were recorded."""

    @property
    def unseen(self) -> str | None:
        """The reason not to call two records without a difference the same."""
        return None if self.found else incomplete.unseen(self.a, self.b)


def place(path: Path) -> Path | None:
    """The record in a folder, or in its folder `record`, as `verify` leaves it for each run of a command."""
    return next((place for place in (path, path / "record") if record.is_one(place)), None)


def compare(first: Path, second: Path) -> Comparison:
    """Compares the records in two folders; one that goes on where the other stopped is B.

    UsageError where there is none or they cannot be compared, ReproError where one cannot be believed.
    """
    a, b = (record.read(place(path) or path) for path in (first, second))
    split = (layouts.described(a), layouts.described(b)) if layouts.differ(a, b) else None
    a, b = layouts.side_by_side(a, b)
    difference.check_comparable(a, b)
    if any(pair.offset for pair in pairs(b, a)) and not any(pair.offset for pair in pairs(a, b)):
        a, b, split = b, a, split and split[::-1]
    comparison = of_commands(a, b, difference.first_difference(a, b))
    comparison.layouts = split
    return comparison


def of_commands(a: Record, b: Record, first: Difference | None) -> Comparison:
    """Explains the difference of two commands' records."""
    comparison = known(a, b, first)
    ours, theirs = (shlex.join(one.content.command) for one in (a, b))
    if ours != theirs and not any(pair.offset for pair in pairs(a, b)):
        comparison.facts.insert(0, Cause("command", ours, theirs, "another command, or other options"))
    return comparison


def known(a: Record, b: Record, first: Difference | None) -> Comparison:
    """Explains a difference."""
    facts = causes(a.facts, b.facts)
    if first is None:
        return Comparison(a, b, None, facts=facts)
    why = reasons.other_numerics(a, b) or reasons.reason(first)
    far, growth = distance.distance(a, b, first), distance.growth(a, b, first)
    return Comparison(a, b, first, why, far, growth, facts, begins=operations.recorded(a, b, first))
