"""Gradients of dilation: the largest sum of an image and a kernel in each window. Dilation itself is exact."""

import math
from collections.abc import Sequence

import numpy as np

from repro.portable.backends.numpy import Array
from repro.portable.modes.tensorflow.dispatcher.dispatch import Attributes, define
from repro.portable.modes.tensorflow.dispatcher.types import as_float32, cast_back
from repro.portable.modes.tensorflow.operations.scatter import added
from repro.portable.modes.tensorflow.operations.steps import Steps, steps


def _largest(given: Attributes, x: Array, w: Array) -> tuple[Array, tuple[int, ...], Steps]:
    """The number [B, H', W', C] of the element of a kernel that gives the first of the largest sums, and how it moves."""
    taps = w.shape[:2]
    how, _ = steps({**given, "dilations": given["rates"]}, x.shape[1:3], taps)
    outputs = how.outputs(x.shape[1:3], taps)
    padded = np.pad(x, ((0, 0), *how.edges, (0, 0)), constant_values=-np.inf)
    best, first = np.full((len(x), *outputs, x.shape[-1]), -np.inf), np.zeros((len(x), *outputs, x.shape[-1]), np.int64)
    for number, tap in enumerate(np.ndindex(*taps)):
        total = how.met(padded, tap, outputs) + w[tap]
        first, best = np.where(total > best, number, first), np.where(total > best, total, best)
    return first, taps, how


def _places(first: Array, taps: Sequence[int], how: Steps, shape: Sequence[int]) -> Array:
    """The place of each largest sum in the padded images, whose shape is [B, H, W, C]."""
    batch, *inner, channel = np.indices(first.shape, sparse=True)
    at = np.divmod(first, taps[1])
    rows, columns = (
        place * step + tap * hole for place, step, tap, hole in zip(inner, how.stride, at, how.dilation, strict=True)
    )
    return ((batch * shape[1] + rows) * shape[2] + columns) * shape[3] + channel


@define("Dilation2DBackpropInput")
def gradient_of_images(given: Attributes, x: Array, w: Array, gradient: Array) -> Array:
    first, taps, how = _largest(given, as_float32(x), as_float32(w))
    sides = [size + sum(edge) for size, edge in zip(x.shape[1:3], how.edges, strict=True)]
    shape = (len(x), *sides, x.shape[-1])
    places = _places(first, taps, how, shape)
    sums = added(places.reshape(-1), as_float32(gradient).reshape(-1, 1), math.prod(shape)).reshape(shape)
    return cast_back(how.inner(sums), x.dtype)


@define("Dilation2DBackpropFilter")
def gradient_of_kernel(given: Attributes, x: Array, w: Array, gradient: Array) -> Array:
    first, _, _ = _largest(given, as_float32(x), as_float32(w))
    places = first * x.shape[-1] + np.arange(x.shape[-1])
    return cast_back(added(places.reshape(-1), as_float32(gradient).reshape(-1, 1), w.size).reshape(w.shape), w.dtype)
