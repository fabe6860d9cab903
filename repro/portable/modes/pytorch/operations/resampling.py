"""Sums of a few numbers along each axis, with weights, in a fixed order.

A product and a sum are operations of their own in float64, which rounds each: no device contracts them.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from repro.portable.definitions.resampling import Taps, transposed, whole
from repro.portable.modes.pytorch.dispatcher.types import cast_back

Column = tuple[slice | Tensor, Tensor | None]
"""The inputs of a tap, and its factors."""


def resampled(x: Tensor, axes: Sequence[Taps], share: Tensor | float = 1.0) -> Tensor:
    """x with its last axes resampled, times a share of each output; rounded once to its type."""
    moved = all(taps.weight is None and taps.index.shape[1] == 1 for taps in axes)
    result = x if moved else x.double()
    for place, taps in reversed(list(enumerate(axes))):
        result = _along(result, place - len(axes), taps)
    return laid_out(result if isinstance(share, float) and share == 1.0 else result * share, x)


def resampled_bytes(x: Tensor, axes: Sequence[Taps]) -> Tensor:
    """Resample uint8 by integers: the result of each axis is rounded, half up, and clamped to 0..255."""
    result = x.int()
    for place, taps in reversed(list(enumerate(axes))):
        weights, bits = whole(taps)
        result = ((_along(result, place - len(axes), weights) + (1 << (bits - 1))) >> bits).clamp(0, 255)
    return laid_out(result.to(x.dtype), x)


def spread(gradient: Tensor, axes: Sequence[Taps], share: Tensor | float = 1.0) -> Tensor:
    """The gradient of resampled with respect to x."""
    scaled = gradient if isinstance(share, float) and share == 1.0 else gradient.double() * share
    result = scaled.double()
    for place, taps in enumerate(axes):
        result = _along(result, place - len(axes), transposed(taps))
    return laid_out(result, gradient)


def laid_out(result: Tensor, like: Tensor) -> Tensor:
    """Numbers in the type and the memory format of a tensor."""
    if result.dtype != like.dtype:
        result = cast_back(result.float(), like.dtype)
    if like.dim() == 4 and like.is_contiguous(memory_format=torch.channels_last) and not like.is_contiguous():
        return result.contiguous(memory_format=torch.channels_last)
    return result.contiguous()


def _along(x: Tensor, dim: int, taps: Taps) -> Tensor:
    columns, missing = _columns(taps, x.device, -1 - dim)
    if missing:
        x = torch.cat([x, x.new_zeros((*x.shape[:dim], 1, *x.shape[dim:][1:]))], dim)
    total: Tensor | None = None
    for where, weight in columns:
        part = x.index_select(dim, where) if isinstance(where, Tensor) else x[..., where, *[slice(None)] * (-1 - dim)]
        if weight is not None:
            part = part * weight
        total = part if total is None else total + part
    return x.new_zeros((*x.shape[:dim], len(taps.index), *x.shape[dim:][1:])) if total is None else total


@lru_cache(maxsize=1024)
def _columns(taps: Taps, device: torch.device, after: int) -> tuple[list[Column], bool]:
    """The taps of an axis that so many axes come after, and whether one of them is missing somewhere."""
    columns: list[Column] = []
    for number, column in enumerate(taps.index.T):
        weight = None
        if taps.weight is not None:
            weight = torch.from_numpy(taps.weight[:, number].copy()).view(-1, *[1] * after).to(device)
        columns.append((_where(column, device), weight))
    return columns, bool((taps.index == taps.size).any())


def _where(column: np.ndarray, device: torch.device) -> slice | Tensor:
    """A slice, which costs no copy, where inputs lie at equal distances."""
    steps = np.diff(column)
    if len(column) == 1 or (steps[0] > 0 and (steps == steps[0]).all()):
        step = int(steps[0]) if len(steps) else 1
        return slice(int(column[0]), int(column[-1]) + 1, step)
    return torch.from_numpy(column.copy()).to(device)
