"""Bags of embeddings: rows of a table, summed, averaged or the largest."""

from typing import Any

import torch
from torch import Tensor

from repro.portable.pytorch.mode.dispatch import compose
from repro.portable.pytorch.mode.refusal import refuse

SUM, MEAN, MAX = range(3)

Found = tuple[Tensor, Tensor, Tensor, Tensor]


@compose("_embedding_bag", "_embedding_bag_forward_only")
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
) -> Found:
    """The bags [bags, C], for each index its bag, for each bag its number of rows that count, and the largest's places."""
    ends = offsets[1:] if include_last_offset else torch.cat((offsets[1:], offsets.new_full((1,), len(indices))))
    bags = len(ends)
    bag = torch.repeat_interleave(torch.arange(bags, device=weight.device), ends - offsets[:bags])
    counts = indices != padding_idx if padding_idx >= 0 else torch.ones_like(indices, dtype=torch.bool)
    rows = weight[indices]
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[:, None]
    sizes = torch.zeros(bags, dtype=indices.dtype, device=weight.device).index_add_(0, bag, counts.to(indices.dtype))
    if mode == MAX:
        found, places = _largest(rows, indices, bag, counts, sizes)
        return found, bag, sizes, places
    rows = rows.masked_fill(~counts[:, None], 0.0)
    total = rows.new_zeros(bags, rows.shape[1]).index_add(0, bag, rows)
    found = total / sizes.clamp(min=1)[:, None] if mode == MEAN else total
    return found, bag, sizes, sizes


def _largest(rows: Tensor, indices: Tensor, bag: Tensor, counts: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor]:
    """The largest number of each bag and column, and the index of the first row that has it; 0 and -1 of an empty bag."""
    lowest = rows.masked_fill(~counts[:, None], -torch.inf)
    where = bag[:, None].expand_as(rows)
    start = rows.new_full((len(sizes), rows.shape[1]), -torch.inf)
    most = start.scatter_reduce(0, where, lowest, "amax")
    position = torch.arange(len(rows), device=rows.device)[:, None].expand_as(rows)
    has = (lowest == most[bag]) & counts[:, None]
    none = torch.full(most.shape, len(rows), dtype=torch.int64, device=rows.device)
    first = none.scatter_reduce(0, where, position.masked_fill(~has, len(rows)), "amin")
    empty = (sizes == 0)[:, None]
    padded = torch.cat((indices, indices.new_full((1,), -1)))
    return most.masked_fill(empty, 0.0), padded[first]


@compose("_embedding_bag_backward")
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
    if sparse:
        why = "the gradient is a sparse tensor, which has no portable form"
        raise refuse("_embedding_bag_backward", why, "leave sparse=True out")
    how = (num_weights, scale_grad_by_freq, mode, per_sample_weights, padding_idx)
    return embedding_bag_dense_backward(grad, indices, offset2bag, bag_size, maximum_indices, *how)


@compose("_embedding_bag_dense_backward")
def embedding_bag_dense_backward(
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
        empty = maximum_indices < 0
        table = grad.new_zeros(num_weights, grad.shape[1])
        return table.scatter_add(0, maximum_indices.clamp(min=0), grad.masked_fill(empty, 0.0))
    share = grad / bag_size.clamp(min=1)[:, None] if mode == MEAN else grad
    rows = share[offset2bag]
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[:, None]
    return torch.ops.aten.embedding_dense_backward(rows, indices, num_weights, padding_idx, scale_grad_by_freq)


@compose("_embedding_bag_per_sample_weights_backward")
def per_sample_weights_backward(
    grad: Tensor,
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    offset2bag: Tensor,
    mode: int,
    padding_idx: int = -1,
) -> Tensor:
    found = (grad[offset2bag] * weight[indices]).sum(1)
    return found.masked_fill(indices == padding_idx, 0.0) if padding_idx >= 0 else found
