"""Sums, means, variances, norms and scans."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from repro.portable.compiler.pytorch.plan import run
from repro.portable.definitions import scans, sums
from repro.portable.modes.pytorch.dispatcher import elastic
from repro.portable.modes.pytorch.dispatcher.tables import compose, define
from repro.portable.modes.pytorch.dispatcher.types import as_float32, axes_of, dropped
from repro.portable.modes.pytorch.operations.conversions import by_integers


def along(function: Callable[..., Any], x: Tensor, dim: Any, keepdim: bool, dtype: torch.dtype | None) -> Any:
    """A function of float32 or float64 numbers and axes, which stay with size 1: without them, rounded to a type."""
    wanted = dtype or x.dtype
    x = as_float32(x if dtype is None else x.to(dtype))
    axes = axes_of(x, dim)
    if not axes:
        x, axes, keepdim = x.unsqueeze(-1), (x.dim(),), False
    result = function(x, axes)
    if isinstance(result, tuple):
        return tuple(dropped(each, axes, keepdim).to(wanted) for each in result)
    return dropped(result, axes, keepdim).to(wanted)


exact = partial(run, sums.exact)
total = partial(run, sums.total)
_mean = partial(run, sums.mean)


@define("sum")
@by_integers(torch.sum)
def sum_all(self: Tensor, *, dtype: torch.dtype | None = None) -> Tensor:
    return _noted(along(total, self, None, False, dtype), self, None)


@define("sum.dim_IntList")
@by_integers(torch.sum)
def sum_dim(self: Tensor, dim: Any, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    return _noted(along(total, self, dim, keepdim, dtype), self, dim)


def _noted(y: Tensor, x: Tensor, dim: Any) -> Tensor:
    """The sum y of x: that over samples where autograd adds up the gradient of what each of them has."""
    if not elastic.wanted() or not x.dim() or not x.numel() or not x.dtype == y.dtype == torch.float32:
        return y
    return elastic.sums(y, x, axes_of(x, dim))


@define("mean")
def mean_all(self: Tensor, *, dtype: torch.dtype | None = None) -> Tensor:
    return along(_mean, self, None, False, dtype)


@define("mean.dim")
def mean_dim(self: Tensor, dim: Any, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    return along(_mean, self, dim, keepdim, dtype)


@compose("nansum")
def nansum(self: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    return torch.where(self != self, 0.0, self).sum(dim, keepdim, dtype=dtype)


@define("var.correction")
def var(self: Tensor, dim: Any = None, *, correction: float | None = None, keepdim: bool = False) -> Tensor:
    return var_mean(self, dim, correction=correction, keepdim=keepdim)[0]


@define("var_mean.correction")
def var_mean(self: Tensor, dim: Any = None, *, correction: float | None = None, keepdim: bool = False) -> Any:
    given = partial(run, sums.variance, correction=1.0 if correction is None else float(correction))
    return along(given, self, dim, keepdim, None)


@compose("std.correction")
def std(self: Tensor, dim: Any = None, *, correction: float | None = None, keepdim: bool = False) -> Tensor:
    return torch.var(self, dim, correction=correction, keepdim=keepdim).sqrt()


@compose("std_mean.correction")
def std_mean(self: Tensor, dim: Any = None, *, correction: float | None = None, keepdim: bool = False) -> Any:
    variance, mean = torch.var_mean(self, dim, correction=correction, keepdim=keepdim)
    return variance.sqrt(), mean


@define("linalg_vector_norm")
def vector_norm(self: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    if ord == 2:
        return along(partial(run, sums.norm), self, dim, keepdim, dtype)
    if ord == math.inf:
        return along(lambda x, axes: x.abs().amax(axes, True), self, dim, keepdim, dtype)
    if ord == -math.inf:
        return along(lambda x, axes: x.abs().amin(axes, True), self, dim, keepdim, dtype)
    if ord == 0:
        return along(lambda x, axes: exact((x != 0).to(x.dtype), axes), self, dim, keepdim, dtype)
    if ord == 1:
        return along(lambda x, axes: exact(x.abs(), axes), self, dim, keepdim, dtype)
    return along(_power_norm(float(ord)), self, dim, keepdim, dtype)


@compose("norm.Scalar", "norm.ScalarOpt_dtype", "norm.ScalarOpt_dim", "norm.ScalarOpt_dim_dtype")
def norm(self: Tensor, p: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    return torch.linalg.vector_norm(self, 2 if p is None else p, dim, keepdim, dtype=dtype)


def _power_norm(order: float) -> Callable[[Tensor, tuple[int, ...]], Tensor]:
    def of(x: Tensor, axes: tuple[int, ...]) -> Tensor:
        from repro.portable.modes.pytorch.operations.functions import power

        powers = power(x.abs(), torch.full((), order, dtype=x.dtype, device=x.device))
        return power(exact(powers, axes).to(x.dtype), torch.full((), 1 / order, dtype=x.dtype, device=x.device))

    return of


@define("cumsum")
@by_integers(torch.cumsum)
def cumsum(self: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    if not self.dim() or not self.numel():
        return self.to(dtype or self.dtype, copy=True)
    return along(_scan, self, dim, True, dtype)


def _scan(x: Tensor, axes: tuple[int]) -> Tensor:
    """Sums of the first numbers along an axis."""
    return run(scans.cumulative_sum, x.double(), *axes).to(x.dtype)
