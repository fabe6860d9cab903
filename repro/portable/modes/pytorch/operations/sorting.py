"""Sorting, and what follows from it: equals stay in their order.

PyTorch's kernels choose among equals as they like; what they choose follows here from a stable sort. NaN is the largest
number.
"""

from typing import Any

import torch
from torch import Tensor

from repro.portable.modes.pytorch.dispatcher.tables import define

aten = torch.ops.aten
Pair = tuple[Tensor, Tensor]


@define("sort", integers=True)
def sort(self: Tensor, dim: int = -1, descending: bool = False) -> Pair:
    return aten.sort.stable(self, stable=True, dim=dim, descending=descending)


@define("sort.stable", integers=True)
def sort_stable(self: Tensor, *, stable: bool | None, dim: int = -1, descending: bool = False) -> Pair:
    return sort(self, dim, descending)


@define("topk", integers=True)
def topk(self: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Pair:
    if not self.dim() or not 0 <= k <= self.shape[dim]:
        return aten.topk(self, k, dim, largest, sorted)
    values, indices = sort(self, dim, largest)
    return values.narrow(dim, 0, k).contiguous(), indices.narrow(dim, 0, k).contiguous()


def _chosen(pair: Pair, place: Any, dim: int, keepdim: bool) -> Pair:
    """The element of a sort at one place of each line: a number, or a tensor with an axis of size 1."""
    values, indices = pair
    if isinstance(place, int):
        place = torch.full((), place, device=values.device)
    shape = list(values.shape)
    shape[dim] = 1
    place = place.expand(shape)
    values, indices = values.gather(dim, place), indices.gather(dim, place)
    return (values, indices) if keepdim else (values.squeeze(dim), indices.squeeze(dim))


@define("kthvalue", integers=True)
def kthvalue(self: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Pair:
    if not self.dim() or not 1 <= k <= self.shape[dim]:
        return aten.kthvalue(self, k, dim, keepdim)
    return _chosen(sort(self, dim), k - 1, dim, keepdim)


@define("median.dim", integers=True)
def median_dim(self: Tensor, dim: int, keepdim: bool = False) -> Pair:
    """The lower of the middle ones, or the first NaN."""
    return _median(self, dim, keepdim, ignore_nan=False)


@define("nanmedian.dim", integers=True)
def nanmedian_dim(self: Tensor, dim: int, keepdim: bool = False) -> Pair:
    return _median(self, dim, keepdim, ignore_nan=True)


def _median(x: Tensor, dim: int, keepdim: bool, ignore_nan: bool) -> Pair:
    if not x.dim() or not x.shape[dim]:
        return (aten.nanmedian if ignore_nan else aten.median).dim(x, dim, keepdim)
    numbers = (x == x).sum(dim, keepdim=True)
    middle = ((numbers - 1) >> 1).clamp(min=0)
    if not ignore_nan:
        middle = torch.where(numbers < x.shape[dim], numbers, middle)
    return _chosen(sort(x, dim), middle, dim, keepdim)


@define("mode", integers=True)
def mode(self: Tensor, dim: int = -1, keepdim: bool = False) -> Pair:
    """The most frequent number, of several the smallest, where it is last."""
    if not self.dim() or not self.numel():
        return aten.mode(self, dim, keepdim)
    values, indices = (each.movedim(dim, -1) for each in sort(self, dim))
    place = torch.arange(values.shape[-1], device=self.device).expand(values.shape)
    begins = torch.ones_like(place, dtype=torch.bool)
    begins[..., 1:] = values[..., 1:] != values[..., :-1]
    length = place - torch.where(begins, place, 0).cummax(-1).values
    values, indices = _chosen((values, indices), length.argmax(-1, keepdim=True), -1, keepdim)
    return (values.movedim(-1, dim), indices.movedim(-1, dim)) if keepdim else (values, indices)


@define("_unique2", integers=True)
def unique2(
    self: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """In their order, whether asked for or not; each NaN by itself."""
    values, indices = sort(self.reshape(-1), 0)
    begins = torch.ones_like(indices, dtype=torch.bool)
    begins[1:] = values[1:] != values[:-1]
    inverse = counts = indices.new_empty(0)
    if return_inverse:
        inverse = torch.empty_like(indices).scatter_(0, indices, begins.cumsum(0) - 1).view(self.shape)
    if return_counts:
        begin = begins.nonzero().squeeze(1)
        counts = torch.cat([begin[1:], begin.new_full((min(1, len(begin)),), len(values))]) - begin
    return values[begins], inverse, counts


@define("_unique", integers=True)
def unique(self: Tensor, sorted: bool = True, return_inverse: bool = False) -> Pair:
    return unique2(self, sorted, return_inverse)[:2]


@define("median", integers=True)
def median(self: Tensor) -> Tensor:
    return _median(self.reshape(-1), 0, False, ignore_nan=False)[0] if self.numel() else aten.median(self)


@define("nanmedian", integers=True)
def nanmedian(self: Tensor) -> Tensor:
    return _median(self.reshape(-1), 0, False, ignore_nan=True)[0] if self.numel() else aten.nanmedian(self)
