"""Comparison of two records, or of two trainer runs.

Where they diverge, why, and by how much.
"""

import shlex
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from repro.compare import difference, distance, incomplete, reasons
from repro.compare.difference import Difference
from repro.compare.distance import Distance, Point
from repro.compare.facts import Cause, causes
from repro.compare.pairs import pairs
from repro.compare.reasons import Reason
from repro.errors import UsageError
from repro.record import record, trainer_run
from repro.record.record import Record

Json = dict[str, Any]


@dataclass
class Comparison:
    """What is known of the first difference of two records; nothing of the kind where they are the same."""

    a: Record
    b: Record
    found: Difference | None
    why: Reason | None = None
    far: Distance | None = None
    """How far the first array that differs is apart, where both were kept."""
    growth: list[Point] = field(default_factory=list)
    facts: list[Cause] = field(default_factory=list)
    """Recorded facts that differ, most likely cause first."""
    losses: str | None = None
    """Of runs of a trainer: which loss that training reported is the first to differ."""
    operation: str | None = None
    """Where it begins; --narrow finds it."""

    @property
    def unseen(self) -> str | None:
        """Why two records without a difference are not called the same."""
        return None if self.found else incomplete.unseen(self.a, self.b)

    def as_json(self) -> Json | None:
        """The difference in the form of results.json."""
        if self.found is None:
            return None
        size = {"elements": None, "size": None, "ulps": None, "relative": None} | (asdict(self.far) if self.far else {})
        size.pop("name", None)
        return (
            size
            | {
                "epoch": None,
                "step": self.found.step,
                "channel": self.found.channel,
                "last_equal_step": self.found.equal_before,
                "tensor": self.found.names[0] if self.found.names else None,
                "growth": [asdict(point) for point in self.growth],
                "causes": [asdict(cause) for cause in self.facts],
                "operation": self.operation,
            }
            | ({"ranks": self.found.ranks} if self.found.ranks else {})
        )


def read(path: Path) -> Record:
    """What a folder holds, or its folder `record`, as `verify` leaves it for each run of a command.

    UsageError if that is neither a record nor a run, ReproError if it cannot be believed.
    """
    for place in (path, path / "record"):
        if record.is_one(place):
            return record.read(place)
    return trainer_run.read(path)


def compare(first: Path, second: Path) -> Comparison:
    """Of two folders. UsageError where they cannot be compared; a record that goes on where the other stopped is B."""
    a, b = read(first), read(second)
    if isinstance(a, trainer_run.Run) and isinstance(b, trainer_run.Run):
        trainer_run.check_comparable(a, b)
        return of_runs(a, b)
    if isinstance(a, trainer_run.Run) or isinstance(b, trainer_run.Run):
        raise UsageError(
            "compare: one is a run of a trainer, the other the record of a command; compare two of one kind"
        )
    difference.check_comparable(a, b)
    if any(pair.offset for pair in pairs(b, a)) and not any(pair.offset for pair in pairs(a, b)):
        a, b = b, a
    found = difference.first_difference(a, b)
    return of_commands(a, b, found)


def of_commands(a: Record, b: Record, found: Difference | None) -> Comparison:
    """All that is known of a difference of two commands' records."""
    comparison = known(a, b, found)
    ours, theirs = (shlex.join(one.content.command) for one in (a, b))
    if ours != theirs and not any(pair.offset for pair in pairs(a, b)):
        comparison.facts.insert(0, Cause("command", ours, theirs, "another command, or other options"))
    return comparison


def of_runs(a: trainer_run.Run, b: trainer_run.Run) -> Comparison:
    """Of two runs of a trainer, whatever they train."""
    comparison = known(a, b, difference.first_difference(a, b, resumed=False))
    comparison.losses = trainer_run.other_losses(a, b)
    return comparison


def known(a: Record, b: Record, found: Difference | None) -> Comparison:
    """All that is known of a difference."""
    facts = causes(a.facts, b.facts)
    if found is None:
        return Comparison(a, b, None, facts=facts)
    why = reasons.other_numerics(a, b) or reasons.reason(found)
    return Comparison(a, b, found, why, distance.distance(a, b, found), distance.growth(a, b, found), facts)
