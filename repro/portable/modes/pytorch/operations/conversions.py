"""Conversion of floating-point numbers to integers, with one result where they do not fit, too.

C++ leaves it undefined what becomes of a number that a type cannot hold: it depends on the instructions, and so on the place of a number in
its tensor.
"""

from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from repro.portable.modes.pytorch.dispatcher.dispatch import (
    BELOW,
    DEVICES,
    Function,
    counts,
    needs_portable_kernel,
    special,
    thread,
    with_native_ops,
)

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


def _tensor(x: Any) -> Tensor:
    """A tensor; PyTorch's kernels take no numbers in its place."""
    return x if isinstance(x, Tensor) else torch.scalar_tensor(x, dtype=WIDEST[type(x)], device="cpu")


def _is_conversion(x: Tensor, dtype: Any) -> bool:
    """True if integers are made of fractions, by operations that are caught, on a device whose numbers are computed."""
    return dtype in INTEGERS and not thread.inside and x.is_floating_point() and x.device.type in DEVICES


@special("_to_copy")
def converted(operation: OpOverload, name: str) -> Function:
    """PyTorch's own kernel, but for integers made of fractions."""
    redispatch = operation._handle.redispatch_boxed

    def copied(keys: Any, x: Any, **options: Any) -> Any:
        x = _tensor(x)
        if _is_conversion(x, options.get("dtype")) and needs_portable_kernel(name, (x,), {}, integers=False):
            counts[name] += 1
            x = x if _fits(x, options["dtype"]) else to_integers(x, options["dtype"])
        return redispatch(keys & BELOW, x, **options)

    return copied
