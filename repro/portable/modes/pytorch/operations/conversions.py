"""Conversion of floating-point numbers to integers, with one result where they do not fit, too.

C++ leaves it undefined what becomes of a number that a type cannot hold: it depends on the instructions, and so on the place of a number in
its tensor.
"""

from collections.abc import Callable
from contextlib import ExitStack
from functools import wraps
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from repro.portable.modes.pytorch.dispatcher.compilers import replace
from repro.portable.modes.pytorch.dispatcher.dispatch import (
    BELOW,
    DEVICES,
    counts,
    needs_portable_kernel,
    thread,
    with_native_ops,
)
from repro.portable.modes.pytorch.dispatcher.tables import Function, define, special

INTEGERS = {
    *(torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.uint8, torch.uint16, torch.uint32, torch.uint64),
}
TOP = 2.0**63
WIDEST = {bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128}
"""The types in which PyTorch holds Python's numbers."""


@with_native_ops
def to_integers(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Towards zero; what is beyond the ends of a type is its end, NaN is 0."""
    ends, wide = torch.iinfo(dtype), x.double()
    wide = torch.where(wide.isnan(), 0.0, wide.clamp(ends.min, float(ends.max)))
    above = wide >= TOP  # of int64: every number that is not below its end; of uint64: those that are negative as int64
    if dtype == torch.int64:
        return torch.where(above, ends.max, torch.where(above, 0.0, wide).long())
    if dtype == torch.uint64:
        over = wide >= 2 * TOP
        low = torch.where(over, 0.0, torch.where(above, wide - TOP, wide)).long()
        return torch.where(over, -1, low | torch.where(above, torch.iinfo(torch.int64).min, 0)).view(dtype)
    return wide.long().to(dtype)


@with_native_ops
def _fits(x: Tensor, dtype: torch.dtype) -> bool:
    """True if PyTorch's own kernel does it, as all numbers lie within the type. A GPU is not asked: it takes a wait."""
    if not x.is_cpu or not x.numel():
        return x.is_cpu
    ends, (low, high) = torch.iinfo(dtype), (each.item() for each in x.aminmax())
    return ends.min < low and high < ends.max


def whole(x: Any, dtype: torch.dtype | None) -> Any:
    """Fractions as integers, where the type is one of integers that does not hold them; all else as it is."""
    needed = dtype in INTEGERS and isinstance(x, Tensor) and x.is_floating_point() and not _fits(x, dtype)
    return to_integers(x, dtype) if needed else x


def _tensor(x: Any) -> Tensor:
    """A tensor; PyTorch's kernels take no numbers in its place."""
    return x if isinstance(x, Tensor) else torch.scalar_tensor(x, dtype=WIDEST[type(x)], device="cpu")


def _is_conversion(x: Tensor, dtype: Any) -> bool:
    """True if integers are made of fractions, by operations that are dispatched, on a device whose numbers are computed."""
    return dtype in INTEGERS and not thread.inside and x.is_floating_point() and x.device.type in DEVICES


@special("_to_copy")
def converted(operation: OpOverload, name: str) -> Function:
    """PyTorch's own kernel, but for integers made of fractions."""
    redispatch = operation._handle.redispatch_boxed

    def copied(keys: Any, x: Any, **options: Any) -> Any:
        x = _tensor(x)
        if _is_conversion(x, options.get("dtype")) and needs_portable_kernel(name, (x,), {}, integers=False):
            counts[name] += 1
            x = whole(x, options["dtype"])
        return redispatch(keys & BELOW, x, **options)

    return copied


def by_integers(own: Callable[..., Tensor]) -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    """A decorator of definitions with a `dtype`: of a type of integers PyTorch's own, which is given no fractions."""

    def decorated(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        @wraps(function)
        def computed(self: Tensor, *given: Any, dtype: torch.dtype | None = None, **options: Any) -> Tensor:
            if dtype in INTEGERS:
                return own(whole(self, dtype), *given, dtype=dtype, **options)
            return function(self, *given, dtype=dtype, **options)

        return computed

    return decorated


# --- fractions that are written into integers -------------------------------------------------------------------------

WRITTEN = "slice_scatter select_scatter diagonal_scatter as_strided_scatter fill.Tensor"
"""Operations that return the first tensor with the second one, of whatever type, written into it."""


def _writing(name: str) -> Callable[..., Tensor]:
    base, _, overload = name.partition(".")
    own = getattr(getattr(torch.ops.aten, base), overload or "default")

    def written(self: Tensor, src: Tensor, *rest: Any, **options: Any) -> Tensor:
        return own(self, whole(src, self.dtype), *rest, **options)

    return written


for _name in WRITTEN.split():
    define(_name)(_writing(_name))


def install(undo: ExitStack) -> None:
    """Converts what Python writes into tensors of integers, until `undo` is closed.

    A kernel for `copy_` would cost each copy more than the copy itself, also those that PyTorch makes within operations.
    """
    own_copy, own_set, own_copies = Tensor.copy_, Tensor.__setitem__, torch._foreach_copy_

    @wraps(own_copy)
    def copy_(self: Tensor, src: Any, *rest: Any, **options: Any) -> Tensor:
        return own_copy(self, whole(src, self.dtype) if self.dtype in INTEGERS else src, *rest, **options)

    @wraps(own_set)
    def set_item(self: Tensor, index: Any, value: Any) -> None:
        own_set(self, index, value)  # it raises an error for some kinds of indices
        if self.dtype in INTEGERS and not thread.inside and whole(value, self.dtype) is not value:
            own_set(self, index, whole(value, self.dtype))

    @wraps(own_copies)
    def copies(self: Any, src: Any, *rest: Any, **options: Any) -> Any:
        given = [whole(new, old.dtype) for old, new in zip(self, src, strict=True)] if len(self) == len(src) else src
        return own_copies(self, given, *rest, **options)

    replace(undo, torch, "_foreach_copy_", copies)
    for name, new in {"copy_": copy_, "__setitem__": set_item}.items():
        undo.callback(delattr, Tensor, name)  # it is inherited
        setattr(Tensor, name, new)
