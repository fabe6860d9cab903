"""Portable numerics for any program, without an edit.

    import repro.portable.pytorch as portable

    portable.enable()

From then on each of PyTorch's operations in this process gives the same bits on any CPU or GPU, or is refused by name.
"""

from collections import Counter
from collections.abc import Collection
from types import TracebackType

import torch

from repro.portable import kernels
from repro.portable.pytorch.backend import Backend
from repro.portable.pytorch.mode import dispatch
from repro.portable.pytorch.mode.refusal import RefusedError as RefusedError
from repro.portable.pytorch.mode.registry import Registration


class Mode:
    """The mode, on until close(); as a context, until its end."""

    def __init__(self, allow: Collection[str] = (), precision: str = "high") -> None:
        self.flags = torch._C._get_mkldnn_enabled(), torch._C._get_cudnn_enabled()
        self.engine, Backend.engine = Backend.engine, "int16" if kernels.paired() else "float64"
        self.registration = Registration(frozenset(allow))
        torch._C._set_mkldnn_enabled(False)
        torch._C._set_cudnn_enabled(False)

    def close(self) -> None:
        global _mode
        self.registration.close()
        Backend.engine = self.engine
        torch._C._set_mkldnn_enabled(self.flags[0])
        torch._C._set_cudnn_enabled(self.flags[1])
        _mode = None

    def __enter__(self) -> "Mode":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


_mode: Mode | None = None


def enable(allow: Collection[str] = (), precision: str = "high") -> Mode:
    """Switches portable numerics on for this process: all threads, all devices."""
    global _mode
    if _mode is None:
        _mode = Mode(allow, precision)
    return _mode


def disable() -> None:
    """Switches them off."""
    if _mode is not None:
        _mode.close()


def counted() -> dict[str, dict[str, int]]:
    """How many operations of each kind were computed portably, and how many were let through."""
    kinds: Counter[str] = Counter()
    for name, number in list(dispatch.counts.items()):
        kinds[name.partition(".")[0].removesuffix("_")] += number
    return {"operations": dict(kinds), "allowed": dict(dispatch.let_through)}


def summary() -> str:
    """The same in words, without the numbers of each."""
    kinds, allowed = counted().values()
    text = f"{sum(kinds.values()):,} operations of {len(kinds)} kinds"
    if allowed:
        text += f"; let through: {', '.join(sorted(allowed))}"
    return text
