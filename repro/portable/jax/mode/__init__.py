"""Portable numerics for any program, without an edit.

    import repro.portable.jax as portable

    portable.enable()

From then on each of JAX's primitives in this process gives the same bits on any CPU or GPU, or is refused by name.
"""

import importlib
import threading
from collections.abc import Collection
from contextlib import ExitStack
from functools import cache
from types import TracebackType

import jax

from repro.errors import UsageError
from repro.portable import kernels, precisions
from repro.portable.jax.backend import Backend
from repro.portable.jax.mode import checks, gate, options
from repro.portable.jax.mode.refusal import allowed_name, known_names
from repro.portable.refusal import RefusedError as RefusedError
from repro.portable.refusal import unknown_operation

if kernels.available:
    from repro.portable.jax import ffi

DEFINITIONS = (
    "functions",
    "products",
    "convolution",
    "sums",
    "windows",
    "scatter",
    "linalg",
    "spectral",
    "collectives",
)
"""The files of this folder that define primitives."""


class Mode:
    """The mode, on until it is closed; as a context, until its end."""

    def __init__(self, allow: Collection[str], precision: str) -> None:
        self.allow, self.precision = frozenset(map(allowed_name, allow)), precision
        self.uses = 0
        self.undo = ExitStack()
        _load()
        slices = precisions.slices_of(precision)
        for name in sorted(self.allow - known_names()):
            raise unknown_operation(name, f"JAX {jax.__version__}", known_names())
        with self.undo:
            options.install(self.undo)
            self.undo.callback(jax.clear_caches)
            self._replace(Backend, "engine", "float64")
            self._replace(precisions, "slices", slices)
            gate.Gate(self.allow, start).install(self.undo)
            jax.clear_caches()
            self.undo = self.undo.pop_all()

    def _replace(self, owner: object, name: str, value: object) -> None:
        self.undo.callback(setattr, owner, name, getattr(owner, name))
        setattr(owner, name, value)

    def close(self) -> None:
        """Leaves JAX as it was, but for the options of XLA."""
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


def start() -> None:
    """The matmul backend and the self-check of JAX's default device: UsageError where it fails."""
    if kernels.available and gate.bypassed(ffi.possible):
        Backend.engine = "int16"
    checks.check_device()


_mode: Mode | None = None
_switch = threading.RLock()


@cache
def _load() -> None:
    """Imports the definitions."""
    for file in DEFINITIONS:
        importlib.import_module(f"{__package__}.{file}")  # `repro portable` loads it under a private name


def enable(allow: Collection[str] = (), precision: str = "high") -> Mode:
    """Switches portable numerics on for this process: all threads, all devices; before the first array is made.

    `allow` names primitives that are let through. With `precision` "highest" operands of float32 products have 26 bits
    below the largest number of their row, with "high" 13. A device that fails the self-check is an error.

    They are off again after disable(), or at the end of the outermost context. UsageError where they are on already, with
    other primitives that are let through or another precision, where JAX has computed already, of an unknown name, and of
    the self-check.
    """
    global _mode
    with _switch:
        if _mode is None:
            _mode = Mode(allow, precision)
        elif not _mode.allow.issuperset(map(allowed_name, allow)) or (
            precision != "high" and precision != _mode.precision
        ):
            raise UsageError("portable: they are on already, with other options; call disable() first")
        _mode.uses += 1
        return _mode


def disable() -> None:
    """Switches them off, whatever contexts are open."""
    with _switch:
        if _mode is not None:
            _mode.close()


def counted() -> dict[str, dict[str, int]]:
    """How many operations of each kind were compiled portably, and how many were let through."""
    return {"operations": dict(gate.counts), "allowed": dict(gate.let_through)}


def summary() -> str:
    """The same in words, without the numbers of each."""
    kinds, allowed = counted().values()
    text = f"{sum(kinds.values()):,} operations of {len(kinds)} kinds"
    if allowed:
        text += f"; let through: {', '.join(sorted(allowed))}"
    return text
