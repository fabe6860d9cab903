"""Types of numbers: computed in float32 or float64, rounded where TensorFlow rounds."""

import numpy as np

from repro.portable.backends.numpy import Array

WIDE = (np.dtype(np.float32), np.dtype(np.float64))


def as_float32(x: Array) -> Array:
    """Halves as float32, which holds them; other arrays, also of complex numbers, as they are."""
    return x if x.dtype in WIDE or x.dtype.kind in "iubc" else x.astype(np.float32)


def cast_back(x: Array, dtype: np.dtype) -> Array:
    """Numbers of float32 or float64, rounded to a type; halves by way of float32."""
    if x.dtype == dtype:
        return np.asarray(x)
    if dtype not in WIDE:
        x = x.astype(np.float32)
    return np.asarray(x.astype(dtype))


def axes_of(axes: Array, rank: int) -> tuple[int, ...]:
    """The axes that an array names, in their order."""
    return tuple(sorted({int(axis) % max(1, rank) for axis in np.atleast_1d(axes)})) if rank else ()
