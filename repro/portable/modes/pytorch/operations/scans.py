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
    found = x.double().movedim(axis, -1)
    if not found.shape[-1]:
        found = found.new_ones((*found.shape[:-1], 1))
    while found.shape[-1] > 1:
        odd = found[..., found.shape[-1] & ~1 :]
        found = torch.cat([found[..., 0 : found.shape[-1] & ~1 : 2] * found[..., 1::2], odd], -1)
    found = rounded(found.movedim(-1, axis), x.dtype)
    return found if keepdim else found.squeeze(axis)


@define("prod")
def prod(self: Tensor, *, dtype: torch.dtype | None = None) -> Tensor:
    return prod_dim(self.reshape(-1), 0, dtype=dtype)


@define("cumprod")
def cumprod(self: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    x = self if dtype is None else self.to(dtype)
    if not x.dim():
        return x.clone()
    found = x.double().movedim(dim, -1)
    step = 1
    while step < found.shape[-1]:
        found = torch.cat([found[..., :step], found[..., step:] * found[..., :-step]], -1)
        step *= 2
    return rounded(found.movedim(-1, dim), x.dtype).contiguous()


@compose("logcumsumexp")
def logcumsumexp(self: Tensor, dim: int) -> Tensor:
    found = self.movedim(dim, -1) if self.dim() else self.unsqueeze(0)
    step = 1
    while step < found.shape[-1]:
        found = torch.cat([found[..., :step], torch.logaddexp(found[..., step:], found[..., :-step])], -1)
        step *= 2
    return found.movedim(-1, dim).contiguous() if self.dim() else found.squeeze(0)
