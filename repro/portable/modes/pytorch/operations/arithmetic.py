"""Sums, products and quotients of elements: each operation rounds by itself.

PyTorch's kernels contract a product and a sum on some processors, and divide by a number as a product with its reciprocal
on GPUs.
"""

import math
from functools import lru_cache, partial
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from repro.portable.modes.pytorch.dispatcher import elastic
from repro.portable.modes.pytorch.dispatcher.dispatch import (
    BELOW,
    KEYS,
    KINDS,
    REFUSED,
    WITHOUT,
    counts,
    needs_portable_kernel,
    thread,
)
from repro.portable.modes.pytorch.dispatcher.tables import Function, compose, define, special
from repro.portable.modes.pytorch.dispatcher.types import HALVES, as_given, scalar
from repro.portable.modes.pytorch.dispatcher.variants import fill


@special("add", "sub")
def addition(operation: OpOverload, name: str) -> Function:
    """PyTorch's own kernel, but for a factor of the second number: their product is rounded first."""
    redispatch, by_number, commutes = operation._handle.redispatch_boxed, "Scalar" in name, name.startswith("add")

    def added(keys: Any, a: Any, b: Any, *rest: Any, **options: Any) -> Any:
        alpha = options.get("alpha", 1) if not rest else rest[0]
        if alpha != 1 and not thread.inside and needs_portable_kernel(name, (a, b), options, integers=False):
            counts[name] += 1
            return _with_factor(name, a, b, alpha, options.get("out"))
        if not by_number:
            a, b = _tensors(a, b, commutes)
        y = redispatch(keys & BELOW, a, b, *rest, **options)
        if elastic.passes:
            elastic.joined(a, b, y)
        return y

    return added


@special("mul")
def multiplication(operation: OpOverload, name: str) -> Function:
    """PyTorch's own kernel, where the numbers are real."""
    redispatch, by_number = operation._handle.redispatch_boxed, "Scalar" in name

    def multiplied(keys: Any, a: Any, b: Any, **options: Any) -> Any:
        if not thread.inside:
            check_real(name, a, b)
        if not by_number:
            a, b = _tensors(a, b, commutes=True)
        return redispatch(keys & BELOW, a, b, **options)

    return multiplied


@special("div")
def division(operation: OpOverload, name: str) -> Function:
    """PyTorch's own kernel, where the numbers are real; on a GPU a number is a tensor there first."""
    redispatch, by_number = operation._handle.redispatch_boxed, "Scalar" in name

    def divided(keys: Any, a: Any, b: Any, *rest: Any, **options: Any) -> Any:
        if not thread.inside:
            check_real(name, a, b)
        if not by_number:
            a, b = _tensors(a, b, commutes=False)
            if a.is_cuda and not b.is_cuda:
                b = b.to(dtype=torch.result_type(a, b), device=a.device)
        if (
            options.get("rounding_mode") == "floor"
            and not thread.inside
            and needs_portable_kernel(name, (a, b), {}, integers=False)
        ):
            counts[name] += 1
            quotient, out = torch.floor_divide(a, b), a if name.startswith("div_") else options.get("out")
            return quotient if out is None else fill(out, quotient)
        return redispatch(keys & BELOW, a, b, *rest, **options)

    return divided


def check_real(name: str, *numbers: Any) -> None:
    """RefusedError for complex numbers."""
    for each in numbers:
        if isinstance(each, complex) or (isinstance(each, Tensor) and KINDS[each.dtype] == REFUSED):
            needs_portable_kernel(name, tuple(one for one in numbers if isinstance(one, Tensor)), {}, integers=False)


def _tensors(a: Any, b: Any, commutes: bool) -> tuple[Tensor, Tensor]:
    """Both as tensors, which is what PyTorch's kernels take in the place of numbers."""
    if isinstance(b, Tensor):
        if isinstance(a, Tensor):
            return a, b
        # Beside a half, a CPU takes the second number as it is, and rounds the first one.
        return (b, number_like(b, a)) if commutes else (number_like(b, a), b)
    if not isinstance(a, Tensor):
        a = scalar(a, torch.result_type(a, a))
    return a, number_like(a, b)


def number_like(x: Tensor, number: Any) -> Tensor:
    """A number as a tensor of no dimension, which counts beside x as the number does."""
    dtype = torch.result_type(x, number)
    if dtype in HALVES and x.dim():
        dtype = torch.float32  # a tensor of no dimension widens none
    return _cached(number, dtype) if number else scalar(number, dtype)


@lru_cache(maxsize=1024, typed=True)
def _cached(number: Any, dtype: torch.dtype) -> Tensor:
    return scalar(number, dtype)


def _with_factor(name: str, a: Tensor, b: Any, alpha: Any, out: Tensor | None) -> Tensor:
    """a + alpha b or a - alpha b; halves are rounded once, in the end."""
    dtype = torch.result_type(a, b)
    wide = [each.float() if isinstance(each, Tensor) and dtype in HALVES else each for each in (a, b)]
    product = wide[1] * alpha
    result = (wide[0] - product if name.startswith("sub") else wide[0] + product).to(dtype)
    if out is not None:
        return fill(out, result)
    return a.copy_(result) if name[3] == "_" else result


@compose("rsub.Tensor", "rsub.Scalar")
def rsub(self: Tensor, other: Any, alpha: Any = 1) -> Tensor:
    return torch.sub(other, self, alpha=alpha)


# --- several operations, each of which rounds -------------------------------------------------------------------------


def _lerp(self: Tensor, end: Tensor, weight: Any) -> Tensor:
    return self + (end - self) * weight


def _addcmul(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    product = tensor1 * tensor2
    return self + (product if value == 1 else product * number_like(self, value))


def _addcdiv(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    return self + (tensor1 if value == 1 else tensor1 * number_like(self, value)) / tensor2


def _several(function: Function) -> Function:
    """Compute halves with one rounding, of the result. Tensors of one type go straight to PyTorch's kernels, which is faster."""
    of_any_type = as_given(function)

    def computed(*arguments: Any, **options: Any) -> Tensor:
        first = arguments[0]
        number = partial(scalar, dtype=torch.float32) if first.dtype in HALVES else partial(number_like, first)
        given = [each if isinstance(each, Tensor) else number(each) for each in arguments]
        dtypes = {each.dtype for each in given}
        if len(dtypes) > 1 or first.dtype in HALVES:
            return of_any_type(*given, **options)
        if not isinstance(options.get("value", 1), Tensor):
            with WITHOUT(KEYS):
                return function(*given, **options)
        return function(*given, **options)

    return computed


for _name, _function in {"lerp": _lerp, "addcmul": _addcmul, "addcdiv": _addcdiv}.items():
    define(*([_name] if _name != "lerp" else ["lerp.Scalar", "lerp.Tensor"]))(_several(_function))  # type: ignore[arg-type]


# --- signs ------------------------------------------------------------------------------------------------------------


def _positive(x: Any) -> Any:
    """NaN without its sign, which differs between processors."""
    return torch.where(x.isnan(), math.nan, x) if isinstance(x, Tensor) and x.is_floating_point() else x


@define("copysign.Tensor", "copysign.Scalar")
def copysign(self: Tensor, other: Any) -> Tensor:
    return torch.copysign(self, _positive(other))


@define("signbit")
def signbit(self: Tensor) -> Tensor:
    return torch.signbit(_positive(self))
