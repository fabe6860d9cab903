"""Portable numerics for any program, without an edit.

    import repro.portable.tensorflow as portable

    portable.enable()

From then on each of TensorFlow's operations in this process gives the same bits on any CPU or GPU, or is refused by name.
"""

import threading
from collections.abc import Collection
from contextlib import ExitStack
from types import TracebackType

from repro.errors import UsageError
from repro.portable import precisions
from repro.portable.refusal import RefusedError as RefusedError
from repro.portable.tensorflow.mode import checks, dispatch, environment, registry


class Mode:
    """The mode, on until it is closed; as a context, until its end."""

    def __init__(self, allow: Collection[str], precision: str) -> None:
        self.allow, self.precision = registry.checked(frozenset(allow)), precision
        self.uses = 0
        self.undo = ExitStack()
        with self.undo:
            environment.replace(self.undo, precisions, "slices", precisions.slices_of(precision))
            registry.load()
            dispatch.allowed.update(self.allow)
            self.undo.callback(dispatch.allowed.clear)
            environment.install(self.undo)
            environment.when_initialized(self.undo, checks.check)
            self.undo = self.undo.pop_all()

    def close(self) -> None:
        """Leaves TensorFlow as it was; functions that were traced keep what they were traced with."""
        global _mode
        self.undo.close()
        if _mode is self:
            _mode = None

    def __enter__(self) -> "Mode":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.uses -= 1
        if self.uses <= 0:
            self.close()


_mode: Mode | None = None
_switch = threading.RLock()


def enable(allow: Collection[str] = (), precision: str = "high") -> Mode:
    """Switches portable numerics on for this process: all threads, all devices.

    Call it first: a `tf.function` that was traced before keeps TensorFlow's own operations.

    `allow` names operations that are let through. With `precision` "highest" operands of float32 products have 26 bits
    below the largest number of their row, with "high" 13.

    The self-check is made when TensorFlow has its devices: now, or by the program's first operation. Where it fails, each
    operation is an error.

    They are off again after disable(), or at the end of the outermost context. UsageError where they are on already, with
    other operations that are let through or another precision, and of an unknown one.
    """
    global _mode
    with _switch:
        if _mode is None:
            _mode = Mode(allow, precision)
        elif not _mode.allow.issuperset(allow) or (precision != "high" and precision != _mode.precision):
            raise UsageError("portable: they are on already, with other options; call disable() first")
        _mode.uses += 1
        return _mode


def disable() -> None:
    """Switches them off, whatever contexts are open."""
    with _switch:
        if _mode is not None:
            _mode.close()


def counted() -> dict[str, dict[str, int]]:
    """How many operations of each kind were computed portably, and how many were let through."""
    return {"operations": dict(dispatch.counts), "allowed": dict(dispatch.let_through)}


def summary() -> str:
    """The same in words, without the numbers of each."""
    kinds, allowed = counted().values()
    text = f"{sum(kinds.values()):,} operations of {len(kinds)} kinds"
    if allowed:
        text += f"; let through: {', '.join(sorted(allowed))}"
    return text
