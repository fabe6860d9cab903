"""Bags of embeddings: sums, means and maxima of rows of a table."""

from typing import Any

import torch
from torch import Tensor

from repro.portable.modes.pytorch.dispatcher.refusal import refuse
from repro.portable.modes.pytorch.dispatcher.tables import compose, define
from repro.portable.modes.pytorch.dispatcher.types import as_float32
from repro.portable.modes.pytorch.operations import sums
from repro.portable.modes.pytorch.operations.choices import unsigned
from repro.portable.modes.pytorch.operations.indexing import by_places, by_rows, rounded

SUM, MEAN, MAX = 0, 1, 2


@define("_embedding_bag", "_embedding_bag_forward_only")
def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = SUM,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The result, the bag of each index, the number of rows in each bag, and of maxima the row of each."""
    offsets = offsets[:-1] if include_last_offset else offsets
    bags = len(offsets)
    bag = (
        torch.searchsorted(
            offsets.contiguous(), torch.arange(len(indices), device=indices.device).to(offsets.dtype), right=True
        )
        - 1
    )
    counts = indices != padding_idx if padding_idx >= 0 else torch.ones_like(indices, dtype=torch.bool)
    held = bag[counts].bincount(minlength=bags)
    rows = weight.index_select(0, indices)
    if mode == MAX:
        result, most = _maxima(rows[counts], indices[counts], bag[counts], bags, weight)
        return result, bag, held, most
    if per_sample_weights is not None:
        rows = rounded(rows.double() * per_sample_weights.double()[:, None], as_float32(rows).dtype)
    rows = rows.masked_fill(~counts[:, None], 0.0)
    result = by_rows(rows, 0, bag, bags)
    if mode == MEAN:
        result = result / held.clamp(min=1).double()[:, None]
    return rounded(result, weight.dtype), bag, held, held.new_zeros(0)


def _maxima(rows: Tensor, indices: Tensor, bag: Tensor, bags: int, weight: Tensor) -> tuple[Tensor, Tensor]:
    """The maximum of each column in each bag, 0 in an empty one, and the row of the table that the first is from."""
    where = bag[:, None].expand(rows.shape)
    most = unsigned(rows.new_full((bags, weight.shape[1]), -torch.inf).scatter_reduce(0, where, rows, "amax"))
    position = torch.arange(len(rows), device=rows.device)[:, None].expand(rows.shape)
    position = torch.where(rows == most[bag], position, len(rows))
    first = torch.full(most.shape, len(rows), device=rows.device).scatter_reduce(0, where, position, "amin")
    positions = torch.cat([indices.long(), indices.new_full((1,), -1, dtype=torch.int64)])[first]
    empty = bag.bincount(minlength=bags) == 0
    return most.masked_fill(empty[:, None], 0.0), positions.to(indices.dtype)


@define("_embedding_bag_backward", "_embedding_bag_sparse_backward")
def embedding_bag_backward(
    grad: Tensor,
    indices: Tensor,
    offsets: Tensor,
    offset2bag: Tensor,
    bag_size: Tensor,
    maximum_indices: Tensor,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Tensor | None,
    padding_idx: int = -1,
) -> Tensor:
    if sparse and mode == MAX:
        raise refuse("_embedding_bag_backward", "a sparse gradient of maxima has no portable form", "give sparse=False")
    if sparse:
        rows = _gradient_of_rows(
            grad, indices, offset2bag, bag_size, num_weights, scale_grad_by_freq, mode, per_sample_weights, padding_idx
        )
        return torch.sparse_coo_tensor(indices[None], rows.to(grad.dtype), (num_weights, grad.shape[1]))
    return dense_backward(
        grad,
        indices,
        offset2bag,
        bag_size,
        maximum_indices,
        num_weights,
        scale_grad_by_freq,
        mode,
        per_sample_weights,
        padding_idx,
    )


@define("_embedding_bag_dense_backward")
def dense_backward(
    grad: Tensor,
    indices: Tensor,
    offset2bag: Tensor,
    bag_size: Tensor,
    maximum_indices: Tensor,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    per_sample_weights: Tensor | None,
    padding_idx: int = -1,
) -> Tensor:
    if mode == MAX:
        grad = grad.masked_fill(maximum_indices < 0, 0.0)
        places = maximum_indices.long().clamp(min=0)
        return rounded(by_places(grad, 0, places, (num_weights, grad.shape[1])), grad.dtype)
    rows = _gradient_of_rows(
        grad, indices, offset2bag, bag_size, num_weights, scale_grad_by_freq, mode, per_sample_weights, padding_idx
    )
    return rounded(by_rows(rows, 0, indices, num_weights), grad.dtype)


def _gradient_of_rows(
    grad: Tensor,
    indices: Tensor,
    offset2bag: Tensor,
    bag_size: Tensor,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    per_sample_weights: Tensor | None,
    padding_idx: int,
) -> Tensor:
    """The gradient of each row that a bag has."""
    rows = grad.double().index_select(0, offset2bag)
    if mode == MEAN:
        rows = rows / bag_size[offset2bag].clamp(min=1).double()[:, None]
    if scale_grad_by_freq:
        rows = rows / indices.bincount(minlength=num_weights)[indices].double()[:, None]
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.double()[:, None]
    if padding_idx >= 0:
        rows = rows.masked_fill((indices == padding_idx)[:, None], 0.0)
    return rounded(rows, as_float32(grad).dtype)


@define("_embedding_bag_per_sample_weights_backward")
def per_sample_weights_backward(
    grad: Tensor,
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    offset2bag: Tensor,
    mode: int,
    padding_idx: int = -1,
) -> Tensor:
    products = grad.double().index_select(0, offset2bag) * weight.double().index_select(0, indices)
    gradient = sums.exact(rounded(products, as_float32(grad).dtype), (1,)).squeeze(1)
    return rounded(gradient.masked_fill(indices == padding_idx, 0.0), grad.dtype)


def _shrunk(x: Tensor, order: float, axes: Any, most: float) -> Tensor:
    """Rows whose norm is larger than it may be, scaled down to it."""
    norm = torch.linalg.vector_norm(x, order, axes, keepdim=True)
    shrunk = x * _share(norm, most)
    in_range = (norm > 0) & norm.isfinite()
    if not bool(in_range.all()):  # float64 holds the norms of rows that are too large, or too small, for float32
        wide = torch.linalg.vector_norm(x.double(), order, axes, keepdim=True)
        wide = torch.where(wide.isnan() & ~x.isnan().any(axes, True), torch.inf, wide)
        shrunk = torch.where(in_range, shrunk, (x.double() * _share(wide, most)).to(x.dtype))
    return shrunk


def _share(norm: Tensor, most: float) -> Tensor:
    return torch.where(norm > most, torch.full_like(norm, most) / (norm + 1e-7), 1.0)


@compose("renorm")
def renorm(self: Tensor, p: Any, dim: int, maxnorm: Any) -> Tensor:
    axes = [axis for axis in range(self.dim()) if axis != dim % self.dim()]
    return _shrunk(self, float(p), axes, float(maxnorm))


@compose("embedding_renorm")
def embedding_renorm(self: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    rows = torch.unique(indices)
    return self.index_copy(0, rows, _shrunk(self.index_select(0, rows), norm_type, [1], max_norm))
