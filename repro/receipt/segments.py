"""Segments: the parts of a training between two checkpoints. An auditor draws some of them."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

from repro.record.checkpoints import Checkpoint


@dataclass(frozen=True)
class Segment:
    """The steps from one checkpoint to the next."""

    start: Checkpoint | None
    """What it is resumed from; None where the training begins."""
    end: Checkpoint | None
    """The next checkpoint; None where the training ended without one after its last step."""
    last: int
    """The last step of the segment."""

    @property
    def after(self) -> int:
        """The step after which it begins."""
        return self.start.step if self.start else 0

    @property
    def steps(self) -> int:
        return self.last - self.after

    @property
    def name(self) -> str:
        return f"steps {self.after + 1} to {self.last}"


def segments(checkpoints: Sequence[Checkpoint], steps: int) -> list[Segment]:
    """All segments of a training with a number of steps: together they are the whole of it."""
    inner = [one for one in checkpoints if 0 < one.step <= steps]
    starts: list[Checkpoint | None] = [None, *inner]
    ends: list[Checkpoint | None] = [*inner, None]
    both = zip(starts, ends, strict=True)
    made = [Segment(start, end, end.step if end else steps) for start, end in both]
    return [segment for segment in made if segment.steps]


def drawn(segments: Sequence[Segment], count: int, seed: int) -> list[Segment]:
    """A number of segments, drawn without regard to what is in them, in the order of their steps; at most all."""
    numbers = random.Random(seed).sample(range(len(segments)), min(count, len(segments)))
    return [segments[number] for number in sorted(numbers)]


def unseen(total: int, drawn: int, altered: int) -> float:
    """The chance that none of the altered segments is among those drawn from all: the hypergeometric distribution at 0."""
    return comb(total - altered, drawn) / comb(total, drawn)
