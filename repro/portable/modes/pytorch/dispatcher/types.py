"""Types of numbers: computed in float32 or float64, rounded where PyTorch rounds."""

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor

HALVES = {torch.float16, torch.bfloat16}


def as_float32(x: Tensor) -> Tensor:
    """Halves as float32, which holds them; other tensors as they are."""
    return x.float() if x.dtype in HALVES else x


def scalar(number: Any, dtype: torch.dtype) -> Tensor:
    """A number as a tensor of no dimension: rounded where it is too large for its type, as PyTorch's kernels round it."""
    if isinstance(number, float) and dtype.is_floating_point and math.isfinite(number):
        type_ = torch.finfo(dtype)
        if abs(number) > type_.max:
            infinite = abs(number) >= math.ldexp(1 - type_.eps / 4, math.frexp(type_.max)[1])
            number = math.copysign(math.inf if infinite else type_.max, number)
    return torch.scalar_tensor(number, dtype=dtype, device="cpu")


def as_given(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of float32 and float64 tensors, for halves, too: its results are rounded to the type of the first."""

    @wraps(function)
    def any_type(*arguments: Any, **options: Any) -> Any:
        dtype = next((each.dtype for each in arguments if isinstance(each, Tensor) and each.is_floating_point()), None)
        if dtype not in HALVES:
            return function(*arguments, **options)
        wider = [as_float32(each) if isinstance(each, Tensor) else each for each in arguments]
        options = {name: as_float32(each) if isinstance(each, Tensor) else each for name, each in options.items()}
        return cast_back(function(*wider, **options), dtype)

    return any_type


def cast_back(value: Any, dtype: torch.dtype) -> Any:
    """Results of float32, rounded to a narrower type."""
    if isinstance(value, Tensor):
        return value.to(dtype) if value.dtype == torch.float32 else value
    if isinstance(value, (tuple, list)):
        return type(value)(cast_back(each, dtype) for each in value)
    return value


def axes_of(x: Tensor, dim: Any) -> tuple[int, ...]:
    """The axes that a `dim` of PyTorch names, in their order; all where it names none."""
    if dim is None or dim == [] or dim == ():
        return tuple(range(x.dim()))
    named = (dim,) if isinstance(dim, int) else tuple(dim)
    return tuple(sorted({axis % max(1, x.dim()) for axis in named})) if x.dim() else ()


def dropped(x: Tensor, axes: tuple[int, ...], keepdim: bool) -> Tensor:
    """Without axes of size 1, unless they are to be kept."""
    return x if keepdim or not axes else x.squeeze(axes)
