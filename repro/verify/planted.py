"""Planted faults as results.json has them."""

from typing import Literal

from msgspec import UNSET, UnsetType

from repro.structs import Integer, Number, Struct


class PlantedFault(Struct):
    """A part that was put back to its first value in a resumed run, and what came of it."""

    part: str
    outcome: Literal["seen", "without effect", "not seen", "not planted"]
    why: str | UnsetType | None = UNSET
    """The reason that it was not planted."""
    step: Integer | UnsetType | None = UNSET
    channel: str | UnsetType | None = UNSET


class Controls(Struct, kw_only=True):
    """Faults that were planted in a run that is the same without them."""

    planted: Integer
    seen: Integer
    seconds: Number
    faults: list[PlantedFault]
    void: str | UnsetType = UNSET
    """The reason that none could be planted, or that they have shown nothing."""

    @property
    def is_counted(self) -> bool:
        """True if the counts are those of the faults."""
        outcomes = [fault.outcome for fault in self.faults]
        planted = len(outcomes) - outcomes.count("not planted")
        return (self.planted, self.seen) == (planted, outcomes.count("seen"))
