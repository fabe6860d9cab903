"""Sums, products and quotients of elements: each operation rounds by itself.

PyTorch's kernels contract a product and a sum on some processors, and divide by a number as a product with its reciprocal
on GPUs.
"""

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from repro.portable.pytorch.mode.dispatch import BELOW, Function, compose, concerned, counts, special, thread
from repro.portable.pytorch.mode.types import HALVES
from repro.portable.pytorch.mode.variants import fill


@special("add", "sub", "mul", "div")
def arithmetic(operation: OpOverload, name: str) -> Function:
    """PyTorch's own kernel, where the numbers are real, and without a factor of the second one, which is rounded first."""
    redispatch = operation.redispatch
    adds, by_number = name.startswith(("add", "sub")), "Scalar" in name

    def computed(keys: Any, *arguments: Any, **options: Any) -> Any:
        a, b, *rest = arguments
        if not thread.inside and concerned(name, arguments, options, integers=False) and adds:
            alpha = options.get("alpha", rest[0] if rest else 1)
            if alpha != 1:
                counts[name] += 1
                return _with_factor(name, a, b, alpha, options.get("out"))
        if not by_number:
            if not isinstance(a, Tensor) and not isinstance(b, Tensor):
                a = torch.scalar_tensor(a, dtype=torch.result_type(a, a))
            if not isinstance(a, Tensor) and name.startswith(("add", "mul")):
                a, b = b, a  # beside a half, a CPU takes the second number as it is, and rounds the first one
            if not isinstance(b, Tensor):
                b = number_like(a, b)
            elif not isinstance(a, Tensor):
                a = number_like(b, a)
            if a.is_cuda and not b.is_cuda and name.startswith("div"):
                b = b.to(dtype=torch.result_type(a, b), device=a.device)
        return redispatch(keys & BELOW, a, b, *rest, **options)

    return computed


def number_like(x: Tensor, number: Any) -> Tensor:
    """A number as a tensor of no dimension, which counts beside x as the number does."""
    dtype = torch.result_type(x, number)
    if dtype in HALVES and x.dim():
        dtype = torch.float32  # a tensor of no dimension widens none
    return _cached(number, dtype) if number else torch.scalar_tensor(number, dtype=dtype)


@lru_cache(maxsize=1024, typed=True)
def _cached(number: Any, dtype: torch.dtype) -> Tensor:
    return torch.scalar_tensor(number, dtype=dtype)


def _with_factor(name: str, a: Tensor, b: Any, alpha: Any, out: Tensor | None) -> Tensor:
    """a + alpha b or a - alpha b; halves are rounded once, in the end."""
    dtype = torch.result_type(a, b)
    wide = [each.float() if isinstance(each, Tensor) and dtype in HALVES else each for each in (a, b)]
    product = wide[1] * alpha
    found = (wide[0] - product if name.startswith("sub") else wide[0] + product).to(dtype)
    if out is not None:
        return fill(out, found)
    return a.copy_(found) if name[3] == "_" else found


@compose("rsub.Tensor", "rsub.Scalar")
def rsub(self: Tensor, other: Any, alpha: Any = 1) -> Tensor:
    return torch.sub(other, self, alpha=alpha)


@compose("lerp.Scalar", "lerp.Tensor")
def lerp(self: Tensor, end: Tensor, weight: Any) -> Tensor:
    return self + (end - self) * weight


@compose("addcmul")
def addcmul(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    product = tensor1 * tensor2
    return self + (product if value == 1 else product * value)


@compose("addcdiv")
def addcdiv(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    return self + (tensor1 if value == 1 else tensor1 * value) / tensor2
