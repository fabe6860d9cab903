"""Products, and products and sums of the first numbers along an axis.

Numbers are multiplied with their neighbors, in rounds: the order depends on their number alone.
"""

import torch
from torch import Tensor

from repro.portable.modes.pytorch.dispatcher.dispatch import compose, define
from repro.portable.modes.pytorch.dispatcher.types import axes_of
from repro.portable.modes.pytorch.operations.indexing import rounded


@define("prod.dim_int")
def prod_dim(self: Tensor, dim: int, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    x = self if dtype is None else self.to(dtype)
    if not x.dim():
        return x.clone()
    (axis,) = axes_of(x, dim)
    values = x.double().movedim(axis, -1)
    if not values.shape[-1]:
        values = values.new_ones((*values.shape[:-1], 1))
    while values.shape[-1] > 1:
        odd = values[..., values.shape[-1] & ~1 :]
        values = torch.cat([values[..., 0 : values.shape[-1] & ~1 : 2] * values[..., 1::2], odd], -1)
    values = rounded(values.movedim(-1, axis), x.dtype)
    return values if keepdim else values.squeeze(axis)


@define("prod")
def prod(self: Tensor, *, dtype: torch.dtype | None = None) -> Tensor:
    return prod_dim(self.reshape(-1), 0, dtype=dtype)


@define("cumprod")
def cumprod(self: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    x = self if dtype is None else self.to(dtype)
    if not x.dim():
        return x.clone()
    values = x.double().movedim(dim, -1)
    step = 1
    while step < values.shape[-1]:
        values = torch.cat([values[..., :step], values[..., step:] * values[..., :-step]], -1)
        step *= 2
    return rounded(values.movedim(-1, dim), x.dtype).contiguous()


@compose("logcumsumexp")
def logcumsumexp(self: Tensor, dim: int) -> Tensor:
    values = self.movedim(dim, -1) if self.dim() else self.unsqueeze(0)
    step = 1
    while step < values.shape[-1]:
        values = torch.cat([values[..., :step], torch.logaddexp(values[..., step:], values[..., :-step])], -1)
        step *= 2
    return values.movedim(-1, dim).contiguous() if self.dim() else values.squeeze(0)
