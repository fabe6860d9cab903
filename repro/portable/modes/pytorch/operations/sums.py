"""Sums, means, variances, norms and scans."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from repro.portable.backends.pytorch import Backend
from repro.portable.compiler.pytorch.plan import run
from repro.portable.definitions import doubles, grids, sums
from repro.portable.modes.pytorch.dispatcher.dispatch import compose, define
from repro.portable.modes.pytorch.dispatcher.types import as_float32, axes_of, dropped
from repro.portable.numbers.constants import SUM_BITS


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


def exact(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    """The sum of float32 or float64 numbers, float64, with axes of size 1."""
    if x.dtype == torch.float64:
        return doubles.total(Backend, x, axes)
    return run(grids.exact_sum, x, axes) if x.numel() else x.double().sum(axes, keepdim=True)


def _total(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    if x.dtype == torch.float64 or not x.numel():
        return exact(x, axes)
    return run(sums.total, x, axes)


def _mean(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    if x.dtype == torch.float64 or not x.numel():
        terms = math.prod(x.shape[axis] for axis in axes)
        return exact(x, axes) * (1.0 / terms if terms else math.nan)
    return run(sums.mean, x, axes)


def _squares(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    """The sum of squares, float64."""
    if x.dtype == torch.float64 or not x.numel():
        return exact(x * x, axes)
    return run(sums.sum_of_squares, x, axes)


@define("sum", integers=False)
def sum_all(self: Tensor, *, dtype: torch.dtype | None = None) -> Tensor:
    return along(_total, self, None, False, dtype)


@define("sum.dim_IntList")
def sum_dim(self: Tensor, dim: Any, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    return along(_total, self, dim, keepdim, dtype)


@define("mean")
def mean_all(self: Tensor, *, dtype: torch.dtype | None = None) -> Tensor:
    return along(_mean, self, None, False, dtype)


@define("mean.dim")
def mean_dim(self: Tensor, dim: Any, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    return along(_mean, self, dim, keepdim, dtype)


@compose("nansum")
def nansum(self: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    return torch.where(self != self, 0.0, self).sum(dim, keepdim, dtype=dtype)


def _variance(correction: float) -> Callable[[Tensor, tuple[int, ...]], tuple[Tensor, Tensor]]:
    def of(x: Tensor, axes: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        if x.dtype != torch.float64 and x.numel():
            return run(sums.variance, x, axes, correction=float(correction))
        middle, terms = _mean(x, axes), math.prod(x.shape[axis] for axis in axes)
        share = 1.0 / (terms - correction) if terms > correction else math.nan
        return _squares(x - middle, axes) * share, middle

    return of


@define("var.correction")
def var(self: Tensor, dim: Any = None, *, correction: float | None = None, keepdim: bool = False) -> Tensor:
    return var_mean(self, dim, correction=correction, keepdim=keepdim)[0]


@define("var_mean.correction")
def var_mean(self: Tensor, dim: Any = None, *, correction: float | None = None, keepdim: bool = False) -> Any:
    return along(_variance(1.0 if correction is None else correction), self, dim, keepdim, None)


@compose("std.correction")
def std(self: Tensor, dim: Any = None, *, correction: float | None = None, keepdim: bool = False) -> Tensor:
    return torch.var(self, dim, correction=correction, keepdim=keepdim).sqrt()


@compose("std_mean.correction")
def std_mean(self: Tensor, dim: Any = None, *, correction: float | None = None, keepdim: bool = False) -> Any:
    variance, mean = torch.var_mean(self, dim, correction=correction, keepdim=keepdim)
    return variance.sqrt(), mean


def _norm(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    if x.dtype == torch.float64 or not x.numel():
        return Backend.sqrt(exact(x * x, axes))
    return run(sums.norm, x, axes)


@define("linalg_vector_norm")
def vector_norm(self: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    if ord == 2:
        return along(_norm, self, dim, keepdim, dtype)
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
def cumsum(self: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    if not self.dim() or not self.numel():
        return self.to(dtype or self.dtype, copy=True)
    return along(_scan(dim % self.dim()), self, None, True, dtype)


def _scan(axis: int) -> Callable[[Tensor, tuple[int, ...]], Tensor]:
    """Sums of the first numbers along an axis: on one grid for each line, where they are exact."""

    def of(x: Tensor, _: tuple[int, ...]) -> Tensor:
        if x.dtype == torch.float64:
            bits = doubles.sum_bits(x.shape[axis])
            parts, unit = doubles.slices(Backend, x, (axis,), bits)
            return doubles.joined([part.cumsum(axis) for part in parts], bits) * unit
        q, p = run(_quantized, x, axes=(axis,))
        return (q.cumsum(axis) * (p.double() * 2.0**-SUM_BITS)).float()

    return of


def _quantized(xp: Any, x: Any, axes: tuple[int, ...]) -> Any:
    q, p = grids.quantize(xp, x, axes, SUM_BITS)
    return xp.f64(q), p
