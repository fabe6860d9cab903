"""Definitions of elements: compiled, or some thousands at a time, so that what they make stays in a processor's caches."""

from collections.abc import Callable
from typing import Any

import numpy as np

from repro.portable import kernels
from repro.portable.backends.numpy import Array, Backend
from repro.portable.compiler.numpy import plan

CHUNK = 2**14


def run(function: Callable[..., Any], *arrays: Array, **options: Any) -> Array:
    """Runs function(Backend, *arrays, **options), of which each element depends on those at its place alone."""
    if kernels.available:
        return np.asarray(plan.run((), function, *arrays, **options))
    if len(arrays) > 1:
        arrays = tuple(np.broadcast_arrays(*arrays))
    shape = arrays[0].shape
    flat = [np.ascontiguousarray(each).reshape(-1) for each in arrays]
    size = flat[0].size
    if size <= CHUNK:
        return np.asarray(function(Backend, *flat, **options)).reshape(shape)
    result = np.empty(size, arrays[0].dtype)
    for begin in range(0, size, CHUNK):
        part = slice(begin, begin + CHUNK)
        result[part] = function(Backend, *(each[part] for each in flat), **options)
    return result.reshape(shape)
