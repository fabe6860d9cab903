"""Sums of a few numbers along each axis, with weights, in a fixed order: pooling, interpolation, and their gradients.

A product and a sum are operations of their own in float64, which rounds each.
"""

from collections.abc import Sequence

import numpy as np

from repro.portable.backends.numpy import Array
from repro.portable.definitions.resampling import Taps, transposed
from repro.portable.modes.tensorflow.dispatcher.types import as_float32, cast_back

Share = Array | float


def resampled(x: Array, axes: Sequence[Taps], share: Share = 1.0) -> Array:
    """Images [B, ..., C] resampled, times a share of each output; rounded once to their type."""
    moved = all(taps.weight is None and taps.index.shape[1] == 1 for taps in axes)
    result = x if moved else x.astype(np.float64)
    for place, taps in reversed(list(enumerate(axes))):
        result = along(result, 1 + place, taps)
    return cast_back(result if _is_one(share) else result * share, x.dtype)


def spread(gradient: Array, axes: Sequence[Taps], share: Share = 1.0) -> Array:
    """The gradient of resampled with respect to x."""
    result = as_float32(gradient).astype(np.float64)
    result = result if _is_one(share) else result * share
    for place, taps in enumerate(axes):
        result = along(result, 1 + place, transposed(taps))
    return cast_back(result, gradient.dtype)


def along(x: Array, axis: int, taps: Taps) -> Array:
    """The sums of one axis, tap by tap."""
    if (taps.index == taps.size).any():
        edge = np.zeros((*x.shape[:axis], 1, *x.shape[axis + 1 :]), x.dtype)
        x = np.concatenate([x, edge], axis)
    total: Array | None = None
    for number, column in enumerate(taps.index.T):
        part = x.take(column, axis)
        if taps.weight is not None:
            part = part * taps.weight[:, number].reshape(-1, *[1] * (x.ndim - 1 - axis))
        total = part if total is None else total + part
    assert total is not None
    return total


def _is_one(share: Share) -> bool:
    return isinstance(share, float) and share == 1.0
