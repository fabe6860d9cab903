"""Sparse tensors: sums at one place, sums of two, and products with dense matrices.

Indices are integers, and what only moves numbers is PyTorch's own. Numbers at one place are added up before anything else.
"""

from typing import Any

import torch
from torch import Tensor

from repro.portable.backends.pytorch import Backend
from repro.portable.definitions import products as definitions
from repro.portable.definitions import sparse
from repro.portable.modes.pytorch.dispatcher.refusal import refuse
from repro.portable.modes.pytorch.dispatcher.tables import define_sparse
from repro.portable.modes.pytorch.dispatcher.types import as_float32, as_given
from repro.portable.modes.pytorch.operations.indexing import by_rows, rounded
from repro.portable.modes.pytorch.operations.products import plus
from repro.portable.modes.pytorch.operations.random import check

COO, CSR, CSC = torch.sparse_coo, torch.sparse_csr, torch.sparse_csc


@define_sparse("_coalesce")
def coalesce(self: Tensor) -> Tensor:
    """Each place once, in order. A number that is alone there stays; others are exact sums."""
    index, values = self._indices(), self._values()
    there, group, number = torch.unique(_flat(index, self.shape), return_inverse=True, return_counts=True)
    alone = number[group] == 1
    rows = values.reshape(len(values), -1)
    sums = rounded(by_rows(rows.masked_fill(alone[:, None], 0.0), 0, group, len(there)), rows.dtype)
    sums = sums.index_copy(0, group[alone], rows[alone]).reshape(-1, *values.shape[1:])
    return _made(index.new_empty(len(index), len(there)).index_copy(1, group, index), sums, self.shape)


def _flat(index: Tensor, shape: torch.Size) -> Tensor:
    """Places as numbers, in the order of the axes."""
    place = index.new_zeros(index.shape[1])
    for axis, size in zip(index, shape, strict=False):
        place = place * size + axis
    return place


def _made(index: Tensor, values: Tensor, shape: torch.Size) -> Tensor:
    """A tensor of coordinates that are in order."""
    return torch.sparse_coo_tensor(index, values, shape, is_coalesced=True)


def _entries(name: str, x: Tensor) -> tuple[Tensor, Tensor]:
    """The places of numbers, int64 [axes, N], and the numbers [N, ...]. One place may be there several times."""
    if x.layout is COO:
        return x._indices(), x._values()
    if x.layout not in (CSR, CSC) or x.dim() != 2:
        raise refuse(name, f"a tensor of layout {x.layout} has no portable form", "use coordinates", [x])
    if x.layout is CSR:
        index = torch._convert_indices_from_csr_to_coo(x.crow_indices(), x.col_indices())
    else:
        index = torch._convert_indices_from_csr_to_coo(x.ccol_indices(), x.row_indices(), transpose=True)
    return index.long(), x.values()


def _summed(name: str, x: Tensor) -> tuple[Tensor, Tensor]:
    """The places and numbers of _entries(), each place once."""
    return _entries(name, coalesce(x) if x.layout is COO and not x.is_coalesced() else x)


def _with_values(x: Tensor, values: Tensor) -> Tensor:
    """Other numbers at the places of x, as _entries has them."""
    if x.layout is COO:
        return torch.sparse_coo_tensor(x._indices(), values, x.shape, is_coalesced=x.is_coalesced())
    ends, others = (x.crow_indices(), x.col_indices()) if x.layout is CSR else (x.ccol_indices(), x.row_indices())
    return torch.sparse_compressed_tensor(ends, others, values, x.shape, layout=x.layout)


# --- elements ---------------------------------------------------------------------------------------------------------


def _sum(name: str, self: Tensor, other: Tensor, factor: Any) -> Tensor:
    """What is added is multiplied by the factor first; each operation rounds."""
    if not isinstance(other, Tensor) or other.layout is torch.strided or self.layout not in (torch.strided, COO):
        raise refuse(name, "this sum of a sparse tensor has no portable form", "add it to a dense tensor", [self])
    check(self.shape == other.shape, f"{name}: tensors of sizes {list(self.shape)} and {list(other.shape)}")
    index, values = _summed(name, other)
    values = values if factor == 1 else values * factor
    if self.layout is torch.strided:
        place = tuple(index)
        return self.index_put(place, self[place] + values)
    mine, numbers = _summed(name, self)
    return coalesce(torch.sparse_coo_tensor(torch.cat([mine, index], 1), torch.cat([numbers, values]), self.shape))


@define_sparse("add.Tensor")
def add(self: Tensor, other: Tensor, *, alpha: Any = 1) -> Tensor:
    return _sum("add", self, other, alpha)


@define_sparse("sub.Tensor")
def sub(self: Tensor, other: Tensor, *, alpha: Any = 1) -> Tensor:
    return _sum("sub", self, other, -alpha)


def _of_numbers(name: str) -> None:
    """A product or a quotient of a sparse tensor and a number, or of one and a dense tensor: at each place by itself."""
    function = getattr(torch, name)

    @define_sparse(f"{name}.Tensor", f"{name}.Scalar")
    def computed(self: Any, other: Any) -> Tensor:
        x, y = (other, self) if name == "mul" and self.layout is torch.strided else (self, other)
        dense = isinstance(y, Tensor) and y.dim() > 0
        if x.layout is torch.strided or (dense and (y.layout is not torch.strided or y.shape != x.shape)):
            raise refuse(name, "of these tensors it has no portable form", "use dense tensors", [x, y])
        index, values = _entries(name, x)
        return _with_values(x, function(values, y[tuple(index)] if dense else y))


_of_numbers("mul")
_of_numbers("div")


@define_sparse("sparse_mask")
def masked(self: Tensor, mask: Tensor) -> Tensor:
    """The numbers of a tensor at the places of another one, which may be there several times; 0 where the first has none."""
    index, _ = _entries("sparse_mask", mask)
    if self.layout is torch.strided:
        return _with_values(mask, self[tuple(index)])
    return _with_values(mask, _at(index, self.shape, *_summed("sparse_mask", self)))


def _at(index: Tensor, shape: torch.Size, places: Tensor, values: Tensor) -> Tensor:
    """The numbers of a sparse tensor, whose places are in any order, at other places."""
    if not len(values):
        return values.new_zeros(index.shape[1], *values.shape[1:])
    known, order = _flat(places, shape).sort()
    wanted = _flat(index, shape)
    near = torch.searchsorted(known, wanted).clamp(max=len(known) - 1)
    there = (known[near] == wanted).reshape(-1, *[1] * (values.dim() - 1))
    return torch.where(there, values[order[near]], 0.0)


@define_sparse("_sparse_sum.dim")
def sums_along(self: Tensor, dim: Any) -> Tensor:
    """The sum along axes: sparse, unless no axis is left that has places."""
    axes = {axis % self.dim() for axis in dim}
    if max(axes) >= self.sparse_dim():
        raise refuse("_sparse_sum", "along dense axes it has no portable form", "use a dense tensor", [self])
    kept = [axis for axis in range(self.dim()) if axis not in axes]
    index, shape = (
        self._indices()[[axis for axis in kept if axis < self.sparse_dim()]],
        [self.shape[axis] for axis in kept],
    )
    result = coalesce(torch.sparse_coo_tensor(index, self._values(), torch.Size(shape)))
    if len(index):
        return result
    return result._values().sum(0)  # of one number at most


# --- products ---------------------------------------------------------------------------------------------------------


def _product(name: str, a: Tensor, b: Tensor) -> Tensor:
    """[M, K] and [K, N] -> [M, N], one of which is sparse."""
    words = f"mat1 and mat2 shapes cannot be multiplied ({a.shape[0]}x{a.shape[1]} and {b.shape[0]}x{b.shape[1]})"
    check(a.shape[1] == b.shape[0], words)
    check(a.dtype == b.dtype, f"{name}: matrices of {a.dtype} and {b.dtype}")
    first = a.layout is not torch.strided
    if first and b.layout is not torch.strided:
        raise refuse(name, "a product of two sparse tensors has no portable form", "use a dense tensor", [a, b])
    (rows, columns), values = _summed(name, a if first else b)
    if not first:
        rows, columns = columns, rows
    dense, height = (b, a.shape[0]) if first else (a.t(), b.shape[1])
    total = sparse.product(Backend, rows, columns, as_float32(values), as_float32(dense), height)
    total = rounded(total, a.dtype)
    return total if first else total.t().contiguous()


@define_sparse("mm")
def mm(self: Tensor, mat2: Tensor) -> Tensor:
    return _product("mm", self, mat2)


@define_sparse("mv")
def mv(self: Tensor, vec: Tensor) -> Tensor:
    return _product("mv", self, vec[:, None])[:, 0]


@define_sparse("addmm", "_sparse_addmm")
def addmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    if self.layout is not torch.strided:
        raise refuse("addmm", "a sparse result has no portable form", "add to a dense tensor", [self])
    return plus(_product("addmm", mat1, mat2), self, beta, alpha)


@define_sparse("sparse_sampled_addmm")
def sampled_addmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1, slices: int) -> Tensor:
    """The product of two dense matrices, with its bits, at the places of a sparse one."""
    (rows, columns), values = _entries("sparse_sampled_addmm", self)

    @as_given
    def at_places(a: Tensor, b: Tensor) -> Tensor:
        if not a.shape[1]:
            return a.new_zeros(len(rows))
        return definitions.batched(Backend, a[rows][:, None], b.t()[columns][:, :, None], slices)[:, 0, 0]

    return _with_values(self, plus(at_places(mat1, mat2), values, beta, alpha))
