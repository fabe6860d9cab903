"""Portable numerics for any program, without an edit.

    import repro.portable.jax as portable

    portable.enable()

From then on each of JAX's primitives in this process gives the same bits on any CPU or GPU, or is refused by name.
"""

from collections.abc import Collection

import jax

from repro.portable import kernels
from repro.portable.backends.jax import Backend
from repro.portable.modes.common import switch
from repro.portable.modes.common.refusal import RefusedError as RefusedError
from repro.portable.modes.common.refusal import unknown_operation
from repro.portable.modes.jax.dispatcher import checks, gate, options, registry

if kernels.available:
    from repro.portable.kernels import jax as ffi


class Mode(switch.Mode):
    """Portable numerics in JAX. XLA keeps its options to the end of the process."""

    @staticmethod
    def names(allow: Collection[str]) -> frozenset[str]:
        registry.load()
        allowed = frozenset(map(registry.allowed_name, allow))
        for name in sorted(allowed - registry.lowered_names()):
            raise unknown_operation(name, f"JAX {jax.__version__}", registry.lowered_names())
        return allowed

    def begin(self) -> None:
        options.install(self.undo)
        self.undo.callback(jax.clear_caches)
        self.replace(Backend, "engine", "float64")
        gate.Gate(self.allow, start).install(self.undo)
        jax.clear_caches()


def start() -> None:
    """The matmul backend and the self-check of JAX's default device: UsageError where it fails."""
    if kernels.available and gate.bypassed(ffi.possible):
        Backend.engine = "int16"
    checks.check_device()


def enable(allow: Collection[str] = (), precision: str = "high") -> switch.Mode:
    """Switches portable numerics on for this process: all threads, all devices; before the first array is made.

    `allow` names primitives that are run natively. With `precision` "highest" operands of float32 products have 26 bits
    below the largest number of their row, with "high" 13. A device that fails the self-check is an error.

    They are off again after disable(), or at the end of the outermost context. UsageError where they are on already, with
    other primitives that are run natively or another precision, where JAX has computed already, of an unknown name, and of
    the self-check.
    """
    return Mode.enable(allow, precision)


def disable() -> None:
    """Switches them off, whatever contexts are open."""
    Mode.disable()


def counted() -> dict[str, dict[str, int]]:
    """The number of operations of each kind that were compiled portably, and that ran natively."""
    return {"operations": dict(gate.counts), "allowed": dict(gate.ran_natively)}


def summary() -> str:
    """The counts in words, without the number of each."""
    return switch.in_words(**counted())
