"""Products along an axis, and products and logarithms of sums of its first numbers."""

import operator
from collections.abc import Callable

import torch
from torch import Tensor

from repro.portable.backends.pytorch import Backend
from repro.portable.definitions import scans
from repro.portable.modes.pytorch.dispatcher.tables import compose, define
from repro.portable.modes.pytorch.dispatcher.types import axes_of
from repro.portable.modes.pytorch.operations.conversions import by_integers
from repro.portable.modes.pytorch.operations.indexing import rounded


@define("prod.dim_int")
@by_integers(torch.prod)
def prod_dim(self: Tensor, dim: int, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    x = self if dtype is None else self.to(dtype)
    if not x.dim():
        return x.clone()
    (axis,) = axes_of(x, dim)
    result = rounded(scans.product(Backend, x.double().movedim(axis, -1)), x.dtype)
    return result.unsqueeze(axis) if keepdim else result


@define("prod")
@by_integers(torch.prod)
def prod(self: Tensor, *, dtype: torch.dtype | None = None) -> Tensor:
    return prod_dim(self.reshape(-1), 0, dtype=dtype)


@define("cumprod")
@by_integers(torch.cumprod)
def cumprod(self: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    x = self if dtype is None else self.to(dtype)
    return _scan(lambda axis: rounded(scans.cumulative(Backend, x.double(), axis, operator.mul), x.dtype), x, dim)


@compose("logcumsumexp")
def logcumsumexp(self: Tensor, dim: int) -> Tensor:
    return _scan(lambda axis: scans.cumulative(Backend, self, axis, torch.logaddexp), self, dim)


def _scan(function: Callable[[int], Tensor], x: Tensor, dim: int) -> Tensor:
    """A function of an axis; a copy where there is nothing to scan."""
    if not x.dim() or x.shape[dim] < 2:
        return x.clone(memory_format=torch.contiguous_format)
    return function(dim % x.dim()).contiguous()
