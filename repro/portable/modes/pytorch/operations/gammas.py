"""Functions around the gamma function that are series: incomplete ones, derivatives of digamma, gradients of samples."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from repro.portable.backends.pytorch import Backend
from repro.portable.definitions import functions
from repro.portable.definitions.functions import beta, incomplete, zeta
from repro.portable.modes.pytorch.dispatcher.tables import compose, define
from repro.portable.modes.pytorch.operations.functions import floats
from repro.portable.modes.pytorch.operations.random import check


def _evaluate(function: Callable[..., Any], *arrays: Any, **options: Any) -> Tensor:
    """A function of elements, which is not compiled: its loops are long."""
    given, dtype = floats(*arrays)
    given = torch.broadcast_tensors(*given)
    if not given[0].numel():
        return given[0].to(dtype)
    shape = given[0].shape
    flat = (each.reshape(-1) for each in given)
    return functions.rounded(function)(Backend, *flat, **options).to(dtype).reshape(shape)


@define("igamma")
def igamma(self: Tensor, other: Tensor) -> Tensor:
    return _evaluate(incomplete.igamma, self, other)


@define("igammac")
def igammac(self: Tensor, other: Tensor) -> Tensor:
    return _evaluate(incomplete.igammac, self, other)


@define("special_zeta", "special_zeta.self_scalar", "special_zeta.other_scalar", integers=True)
def hurwitz(self: Any, other: Any) -> Tensor:
    return _evaluate(zeta.zeta, self, other, left=bool((torch.as_tensor(other) < 0).any()))


@define("polygamma", integers=True)
def polygamma(n: int, self: Tensor) -> Tensor:
    check(n >= 0, "polygamma(n, x) does not support negative n.")
    (x,), dtype = floats(self)
    order = torch.full_like(x, float(n))
    return _evaluate(zeta.polygamma, order, x, left=bool((x < 0).any())).to(dtype)


@compose("mvlgamma", integers=True)
def mvlgamma(self: Tensor, p: int) -> Tensor:
    """The sum of p values of lgamma, one after the other in float64, and a constant."""
    check(p >= 1, "p has to be greater than or equal to 1")
    dtype = self.dtype if self.is_floating_point() else torch.get_default_dtype()
    total = torch.lgamma(self.double())
    for step in range(1, p):
        total = total + torch.lgamma(self.double() - step * 0.5)
    return (total + p * (p - 1) * 0.25 * math.log(math.pi)).to(dtype)


# --- gradients of samples ---------------------------------------------------------------------------------------------


@define("_standard_gamma_grad")
def standard_gamma_gradient(self: Tensor, output: Tensor) -> Tensor:
    return _evaluate(incomplete.gamma_slope, self, output)


@define("_dirichlet_grad")
def dirichlet_gradient(x: Tensor, alpha: Tensor, total: Tensor) -> Tensor:
    """The slope of a sample's coordinate, of the beta distribution of alpha and total - alpha, over 1 less the coordinate."""
    wide = [each.double() for each in torch.broadcast_tensors(x, alpha, total - alpha)]
    flat = [each.reshape(-1) for each in wide]
    return (beta.slope(Backend, *flat) if x.numel() else flat[0]).reshape(x.shape).to(x.dtype)
