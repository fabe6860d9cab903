"""Numbers written by index, where several meet.

The last one stays, sums are exact, and products are taken of neighbors, in rounds, in the order in which they come.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from repro.portable.modes.pytorch.dispatcher.tables import define
from repro.portable.modes.pytorch.operations.choices import unsigned
from repro.portable.modes.pytorch.operations.indexing import by_places, by_rows, plus, rounded, scatter_add

aten = torch.ops.aten
Indices = Sequence[Tensor | None]


def winners(index: Tensor, dim: int, size: Sequence[int]) -> Tensor:
    """For each number the position, along dim, of the last one that is written to the same place."""
    position = torch.arange(index.shape[dim], device=index.device)
    position = position.view(-1, *[1] * (index.dim() - 1 - dim % index.dim())).expand(index.shape)
    last = torch.zeros(size, dtype=torch.int64, device=index.device)
    return last.scatter_reduce_(dim, index, position, "amax").gather(dim, index)


@define("scatter.src", integers=True)
def scatter(self: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    if index.dim() and index.shape[dim] > 1 and self.dim() == index.dim() == src.dim():
        src = src[tuple(slice(size) for size in index.shape)].gather(dim, winners(index, dim, self.shape))
    return aten.scatter.src(self, dim, index, src)


@define("index_copy", integers=True)
def index_copy(self: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    if index.dim() and len(index) > 1 and source.dim():
        source = source.index_select(dim, winners(index, 0, [self.shape[dim]]))
    return aten.index_copy(self, dim, index, source)


@define("put", integers=True)
def put(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    flat, index, source = self.reshape(-1), index.reshape(-1), source.reshape(-1)
    index = torch.where(index < 0, index + len(flat), index)
    if not accumulate:
        return scatter(flat, 0, index, source).view(self.shape)
    if not self.is_floating_point():
        return aten.put(self, index, source, True)
    return scatter_add(flat, 0, index, source).view(self.shape)


# --- index_put --------------------------------------------------------------------------------------------------------


@define("index_put", "_unsafe_index_put", integers=True)
def index_put(self: Tensor, indices: Indices, values: Tensor, accumulate: bool = False) -> Tensor:
    if accumulate and self.is_floating_point() and self.dim():
        try:
            return plus(self, _put_together(self, indices, values.to(self.dtype)))
        except (IndexError, RuntimeError):
            aten.index_put(self, indices, values, True)  # which says what is wrong
            raise
    return aten.index_put(self, indices, values if accumulate else _of_winners(self, indices, values), accumulate)


@define("_index_put_impl_", integers=True)
def index_put_in_place(
    self: Tensor, indices: Indices, values: Tensor, accumulate: bool = False, unsafe: bool = False
) -> Tensor:
    if accumulate:
        return self.copy_(index_put(self, indices, values, True))
    return aten._index_put_impl_(self, indices, _of_winners(self, indices, values), False, unsafe)


@define("index_put_", integers=True)
def index_put_(self: Tensor, indices: Indices, values: Tensor, accumulate: bool = False) -> Tensor:
    return index_put_in_place(self, indices, values, accumulate)


def _of_winners(x: Tensor, indices: Indices, values: Tensor) -> Tensor:
    """The values, each replaced by the last one that is written to the same place."""
    given = [each for each in indices if each is not None]
    if values.numel() == 1 or all(each.dtype in (torch.bool, torch.uint8) for each in given):
        return values
    axes, place = _places(x, indices)
    if place.numel() < 2:
        return values
    flat, begin, shape = _by_place(x, axes, place, values)
    last = winners(place.reshape(-1), 0, [math.prod(x.shape[axis] for axis in axes)])
    return flat.index_select(begin, last).view(shape)


def _put_together(x: Tensor, indices: Indices, values: Tensor) -> Tensor:
    """The sums of the values at each place, float64, in the shape of x."""
    axes, place = _places(x, indices)
    flat, begin, _ = _by_place(x, axes, place, values)
    sizes, rest = [x.shape[axis] for axis in axes], [axis for axis in range(x.dim()) if axis not in axes]
    after = begin + 1 + sum(begin <= axis < axes[-1] for axis in rest)
    result = by_rows(flat, begin, place.reshape(-1), math.prod(sizes), after).unflatten(begin, sizes)
    order = [*rest[:begin], *axes, *rest[begin:]]
    return result.permute([order.index(axis) for axis in range(x.dim())])


def _places(x: Tensor, indices: Indices) -> tuple[list[int], Tensor]:
    """The axes that are indexed, and the places in them, counted in their order."""
    axes, numbers = _by_axis(indices)
    place = torch.zeros((), dtype=torch.int64, device=x.device)
    for axis, index in zip(axes, torch.broadcast_tensors(*numbers), strict=True):
        size, (low, high) = x.shape[axis], index.aminmax() if index.numel() else (0, -1)
        if low < -size or high >= size:
            raise IndexError(f"an index of dimension {axis} is not below {size}")
        index = torch.where(index < 0, index + size, index) if low < 0 else index
        place = index if axis == axes[0] else place * size + index
    return axes, place


def _by_place(x: Tensor, axes: list[int], place: Tensor, values: Tensor) -> tuple[Tensor, int, list[int]]:
    """The values with all places along one axis, which axis that is, and their shape before."""
    rest = [length for axis, length in enumerate(x.shape) if axis not in axes]
    begin = axes[0] if axes == list(range(axes[0], axes[-1] + 1)) else 0
    shape = [*rest[:begin], *place.shape, *rest[begin:]]
    return values.expand(shape).reshape(*rest[:begin], place.numel(), *rest[begin:]), begin, shape


def _by_axis(indices: Indices) -> tuple[list[int], list[Tensor]]:
    """The axes that are indexed, and the numbers along each; a mask is one list of numbers for each of its axes."""
    axes: list[int] = []
    numbers: list[Tensor] = []
    axis = 0
    for index in indices:
        if index is None:
            axis += 1
            continue
        parts = list(index.nonzero().unbind(1)) if index.dtype in (torch.bool, torch.uint8) else [index.long()]
        axes += range(axis, axis + len(parts))
        numbers += parts
        axis += len(parts)
    return axes, numbers


# --- reductions -------------------------------------------------------------------------------------------------------


def grouped_product(x: Tensor, group: Tensor, groups: int) -> Tensor:
    """The product of the float64 numbers of each group, [N] and [N] -> [groups], 1 where there is none."""
    group, order = group.sort(stable=True)
    x = x[order]
    while len(x) > 1:
        rank = torch.arange(len(x), device=x.device) - torch.searchsorted(group, group)
        even = rank % 2 == 0
        if bool(even.all()) and not bool((rank > 0).any()):
            break
        meets = torch.zeros_like(even)
        meets[:-1] = even[:-1] & (group[1:] == group[:-1])
        following = torch.cat([x[1:], x[:1]])
        x, group = torch.where(meets, x * following, x)[even], group[even]
    return torch.ones(groups, dtype=x.dtype, device=x.device).scatter_(0, group, x)


@define("scatter_reduce.two")
def scatter_reduce(
    self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    if reduce in ("amax", "amin") or not self.dim() or not index.dim():
        return unsigned(aten.scatter_reduce(self, dim, index, src, reduce, include_self=include_self))
    src = src[tuple(slice(size) for size in index.shape)]
    met = torch.zeros(self.shape, dtype=torch.float64, device=self.device)
    met.scatter_add_(dim, index, torch.ones(index.shape, dtype=torch.float64, device=self.device))
    if reduce == "prod":
        places = torch.arange(self.numel(), device=self.device).view(self.shape)
        places = places[
            tuple(slice(size) if axis != dim % self.dim() else slice(None) for axis, size in enumerate(index.shape))
        ].gather(dim, index)
        products = grouped_product(src.reshape(-1).double(), places.reshape(-1), self.numel()).view(self.shape)
        products = products * self.double() if include_self else products
    else:
        products = by_places(src, dim, index, self.shape)
        products = products + self.double() if include_self else products
        if reduce == "mean":
            products = products / (met + 1 if include_self else met)
    return torch.where(met > 0, rounded(products, self.dtype), self)


@define("scatter.reduce")
def scatter_by(self: Tensor, dim: int, index: Tensor, src: Tensor, *, reduce: str) -> Tensor:
    return scatter_reduce(self, dim, index, src, {"add": "sum", "multiply": "prod"}[reduce])


@define("scatter.value_reduce")
def scatter_value_by(self: Tensor, dim: int, index: Tensor, value: Any, *, reduce: str) -> Tensor:
    return scatter_by(self, dim, index, torch.full_like(index, value, dtype=self.dtype), reduce=reduce)


@define("index_reduce")
def index_reduce(
    self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    if not source.dim():
        source = source.view(1)
    index = index.view(-1, *[1] * (source.dim() - 1 - dim % source.dim())).expand(source.shape)
    return scatter_reduce(self, dim, index, source, reduce, include_self=include_self)
