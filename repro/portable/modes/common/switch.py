"""The switch of portable numerics for any program: what it is in each framework."""

import threading
from collections.abc import Collection
from contextlib import ExitStack
from types import TracebackType
from typing import ClassVar, Self

from repro.errors import UsageError
from repro.portable.modes.common import cores
from repro.portable.modes.common.precision import setting
from repro.portable.numbers.precisions import slices_of

_lock = threading.RLock()


class Mode:
    """Portable numerics of a framework, on until they are closed; as a context, until its end."""

    current: ClassVar["Mode | None"] = None
    """The mode of the framework, a class of its own, while it is on."""

    def __init__(self, allow: frozenset[str], precision: str, elastic: bool = False) -> None:
        self.allow, self.precision, self.elastic = allow, precision, elastic
        self.uses = 0
        self.undo = ExitStack()
        with self.undo:
            self.replace(setting, "slices", slices_of(precision))
            cores.install(self.undo)
            self.begin()
            self.undo = self.undo.pop_all()

    @staticmethod
    def names(allow: Collection[str]) -> frozenset[str]:
        """Operations to run natively. UsageError where the framework has no such operation."""
        return frozenset(allow)

    def begin(self) -> None:
        """Replaces what is replaced. Whatever leaves the framework as it was is put on `undo`."""
        raise NotImplementedError

    def replace(self, owner: object, name: str, value: object) -> None:
        """Sets an attribute until the end."""
        self.undo.callback(setattr, owner, name, getattr(owner, name))
        setattr(owner, name, value)

    @classmethod
    def enable(cls, allow: Collection[str], precision: str, elastic: bool = False) -> "Mode":
        """Begins it, or uses the one that is on. UsageError where that has other options."""
        with _lock:
            names = cls.names(allow)
            if elastic and precision != "high":
                raise UsageError(f"portable: elastic goes with precision high, not with {precision}")
            if cls.current is None:
                cls.current = cls(names, precision, elastic)
            elif (
                not cls.current.allow.issuperset(names)
                or precision not in ("high", cls.current.precision)
                or (elastic and not cls.current.elastic)
            ):
                raise UsageError("portable: they are on already, with other options; call disable() first")
            cls.current.uses += 1
            return cls.current

    @classmethod
    def disable(cls) -> None:
        """Ends it, whatever contexts are open."""
        with _lock:
            if cls.current is not None:
                cls.current.close()

    def close(self) -> None:
        """Leaves the framework as it was."""
        self.undo.close()
        if type(self).current is self:
            type(self).current = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.uses -= 1
        if self.uses <= 0:
            self.close()


def in_words(operations: dict[str, int], allowed: dict[str, int]) -> str:
    """Says how many operations of how many kinds were computed portably, and which ran natively."""
    text = f"{sum(operations.values()):,} operations of {len(operations)} kinds"
    return f"{text}; run natively: {', '.join(sorted(allowed))}" if allowed else text
