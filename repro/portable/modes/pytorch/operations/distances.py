"""Distances of points, coordinate by coordinate, in a fixed order, and products of three."""

from collections.abc import Callable

import torch
from torch import Tensor

from repro.portable.backends.pytorch import Backend
from repro.portable.modes.pytorch.dispatcher.refusal import refuse
from repro.portable.modes.pytorch.dispatcher.tables import compose, define
from repro.portable.modes.pytorch.dispatcher.types import as_float32
from repro.portable.modes.pytorch.operations import sums
from repro.portable.modes.pytorch.operations.indexing import by_rows, rounded

Pairs = Callable[[Tensor], tuple[Tensor, Tensor]]
"""One coordinate of all points -> of the first and of the second of each pair."""


def _distances(name: str, first: Tensor, second: Tensor, p: float) -> Tensor:
    """Distances of points [..., M], broadcast: float64."""
    result: Tensor | None = None
    for a, b in zip(first.double().unbind(-1), second.double().unbind(-1), strict=True):
        away = (a - b).abs()
        if p == 2:
            away = away * away
        elif p == 0:
            away = (away != 0).double()
        elif p not in (1, torch.inf):
            raise refuse(name, f"p={p} has no portable form", "use p=2, 1, 0 or infinity")
        if result is not None:
            away = torch.maximum(result, away) if p == torch.inf else result + away
        result = away
    if result is None:
        return torch.zeros(
            torch.broadcast_shapes(first.shape[:-1], second.shape[:-1]), dtype=torch.float64, device=first.device
        )
    return Backend.sqrt(result) if p == 2 else result


def _pulls(away: Tensor, gradient: Tensor, distance: Tensor, p: float) -> Tensor:
    """The gradients of distances with respect to one coordinate of their first points, float64."""
    if p == 2:
        return torch.where(distance == 0, 0.0, gradient * away / distance)
    if p == 1:
        return gradient * away.sign()
    if p == torch.inf:
        return torch.where(away.abs() == distance, gradient * away.sign(), 0.0)
    return torch.zeros_like(away)


@define("_cdist_forward")
def cdist(x1: Tensor, x2: Tensor, p: float, compute_mode: int | None) -> Tensor:
    """[..., P, M] and [..., R, M] -> [..., P, R]."""
    return rounded(_distances("cdist", x1.unsqueeze(-2), x2.unsqueeze(-3), p), x1.dtype)


@define("_euclidean_dist")
def euclidean_distances(x1: Tensor, x2: Tensor) -> Tensor:
    """The distances that PyTorch takes for many points; the gradient is one of products."""
    return cdist(x1, x2, 2.0, None)


@define("_cdist_backward")
def cdist_backward(grad: Tensor, x1: Tensor, x2: Tensor, p: float, cdist: Tensor) -> Tensor:
    a, b, wide = x1.double().unsqueeze(-2), x2.double().unsqueeze(-3), grad.double()
    distance = _distances("cdist", a, b, p)
    parts = []
    for m in range(x1.shape[-1]):
        pulls = rounded(_pulls(a[..., m] - b[..., m], wide, distance, p), as_float32(x1).dtype)
        parts.append(sums.exact(pulls, (pulls.dim() - 1,)).squeeze(-1))
    return rounded(torch.stack(parts, -1), x1.dtype) if parts else torch.zeros_like(x1)


@define("_pdist_forward")
def pdist(self: Tensor, p: float = 2.0) -> Tensor:
    """[N, M] -> of each point and those after it."""
    first, second = torch.triu_indices(len(self), len(self), 1, device=self.device)
    return rounded(_distances("pdist", self[first], self[second], p), self.dtype)


@define("_pdist_backward")
def pdist_backward(grad: Tensor, self: Tensor, p: float, pdist: Tensor) -> Tensor:
    first, second = torch.triu_indices(len(self), len(self), 1, device=self.device)
    away = self.double()[first] - self.double()[second]
    distance = _distances("pdist", self[first], self[second], p)[:, None]
    pulls = rounded(_pulls(away, grad.double()[:, None], distance, p), as_float32(self).dtype)
    gradient = by_rows(torch.cat([pulls, -pulls]), 0, torch.cat([first, second]), len(self))
    return rounded(gradient, self.dtype)


@define("linalg_cross")
def cross(self: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    (a, b, c), (x, y, z) = (each.double().unbind(dim) for each in (self, other))
    return rounded(torch.stack([b * z - c * y, c * x - a * z, a * y - b * x], dim), torch.result_type(self, other))


@compose("_trilinear")
def trilinear(
    i1: Tensor,
    i2: Tensor,
    i3: Tensor,
    expand1: list[int],
    expand2: list[int],
    expand3: list[int],
    sumdim: list[int],
    unroll_dim: int = 1,
) -> Tensor:
    """The sum of products of three numbers, each product rounded: what torch.nn.Bilinear computes."""
    factors = []
    for each, axes in ((i1, expand1), (i2, expand2), (i3, expand3)):
        for axis in axes:
            each = each.unsqueeze(axis)
        factors.append(each)
    product = factors[0] * factors[1] * factors[2]
    return product.sum(sumdim) if sumdim else product
