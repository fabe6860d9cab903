"""Portable numerics for any program, without an edit.

    import repro.portable.tensorflow as portable

    portable.enable()

From then on each of TensorFlow's operations in this process gives the same bits on any CPU or GPU, or is refused by name.
"""

from collections.abc import Collection

from repro.portable.modes.common import switch
from repro.portable.modes.common.refusal import RefusedError as RefusedError
from repro.portable.modes.tensorflow.dispatcher import checks, dispatch, environment, native, registry


class Mode(switch.Mode):
    """Portable numerics in TensorFlow; functions that were traced keep what they were traced with."""

    @staticmethod
    def names(allow: Collection[str]) -> frozenset[str]:
        return registry.checked(frozenset(allow))

    def begin(self) -> None:
        registry.load()
        native.follow(self.replace)
        dispatch.allowed.update(self.allow)
        self.undo.callback(dispatch.allowed.clear)
        environment.install(self.undo)
        environment.when_initialized(self.undo, checks.check)


def enable(allow: Collection[str] = (), precision: str = "high") -> switch.Mode:
    """Switches portable numerics on for this process: all threads, all devices.

    Call it first: a `tf.function` that was traced before keeps TensorFlow's own operations.

    `allow` names operations that are run natively. With `precision` "highest" operands of float32 products have 26 bits
    below the largest number of their row, with "high" 13.

    The self-check is made when TensorFlow has its devices: now, or by the program's first operation. Where it fails, each
    operation is an error.

    They are off again after disable(), or at the end of the outermost context. UsageError where they are on already, with
    other operations that are run natively or another precision, and of an unknown one.
    """
    return Mode.enable(allow, precision)


def disable() -> None:
    """Switches them off, whatever contexts are open."""
    Mode.disable()


def counted() -> dict[str, dict[str, int]]:
    """The number of operations of each kind that were computed portably, and that ran natively."""
    return {"operations": dict(dispatch.counts + native.counts()), "allowed": dict(dispatch.ran_natively)}


def summary() -> str:
    """The counts in words, without the number of each."""
    return switch.in_words(**counted())
