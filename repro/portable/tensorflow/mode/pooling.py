"""Pooling: maxima, and means of windows in a fixed order."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from repro.portable.operations.resampling import Taps, ranges
from repro.portable.tensorflow.mode.backend import Array
from repro.portable.tensorflow.mode.dispatch import Attributes, define
from repro.portable.tensorflow.mode.resampling import Share, resampled, spread
from repro.portable.tensorflow.mode.steps import Steps, back, last, steps
from repro.portable.tensorflow.mode.types import narrowed, single


def _windows(given: Attributes, sizes: Sequence[int]) -> tuple[tuple[int, ...], Steps, str]:
    """The sides of a window, how it moves, and where the channels lie."""
    first = given.get("data_format", "NHWC").startswith("NC")
    ksize = list(given["ksize"])
    if [ksize[0], ksize[1 if first else -1]] != [1, 1]:
        raise ValueError("windows over samples or channels have no portable form")
    kernel = tuple(ksize[2:] if first else ksize[1:-1])
    how, channels = steps(given, sizes, kernel)
    return kernel, how, channels


def _sides(given: Attributes, shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(shape[2:] if given.get("data_format", "NHWC").startswith("NC") else shape[1:-1])


# --- means ------------------------------------------------------------------------------------------------------------


def _taps(sizes: Sequence[int], kernel: Sequence[int], how: Steps) -> tuple[list[Taps], Share]:
    """Those of each axis, and 1 over the number of numbers in each window: what is outside does not count."""
    found = []
    for size, length, step, edge, number in zip(
        sizes, kernel, how.stride, how.edges, how.outputs(sizes, kernel), strict=True
    ):
        begins = tuple(step * place - edge[0] for place in range(number))
        found.append(ranges(size, begins, tuple(begin + length for begin in begins)))
    counts: Any = 1
    for taps in found:
        counts = np.multiply.outer(counts, taps.counts)
    return found, (1.0 / counts)[..., None]


def _average(name: str) -> None:
    @define(name)
    def forward(given: Attributes, x: Array) -> Array:
        kernel, how, channels = _windows(given, _sides(given, x.shape))
        return back(resampled(last(x, channels), *_taps(_sides(given, x.shape), kernel, how)), channels)

    @define(f"{name}Grad")
    def backward(given: Attributes, shape: Array, gradient: Array) -> Array:
        sizes = _sides(given, [int(size) for size in shape])
        kernel, how, channels = _windows(given, sizes)
        return back(spread(last(gradient, channels), *_taps(sizes, kernel, how)), channels)


# --- maxima -----------------------------------------------------------------------------------------------------------


def _largest(x: Array, kernel: Sequence[int], how: Steps) -> tuple[Array, Array, tuple[int, ...]]:
    """Of each window, NaN where it holds one, and the place of the first of equals."""
    edges = ((0, 0), *how.edges, (0, 0))
    padded = np.pad(x, edges, constant_values=-np.inf)
    outputs = how.outputs(x.shape[1:-1], kernel)
    best = how.met(padded, (0,) * len(kernel), outputs).copy()
    first = np.zeros(best.shape, np.int16)
    for place, tap in enumerate(np.ndindex(*kernel)):
        part = how.met(padded, tap, outputs)
        better = (part > best) | (part != part)
        best, first = np.where(better, part, best), np.where(better, np.int16(place), first)
    return best, first, outputs


def _maximum(name: str) -> None:
    @define(name)
    def forward(given: Attributes, x: Array) -> Array:
        kernel, how, channels = _windows(given, _sides(given, x.shape))
        best, _, _ = _largest(last(single(x), channels), kernel, how)
        return narrowed(back(best, channels), x.dtype)

    @define(f"{name}Grad")
    def backward(given: Attributes, x: Array, y: Array, gradient: Array) -> Array:
        """To the first of equals; where windows overlap, in the order of a window's places."""
        kernel, how, channels = _windows(given, _sides(given, x.shape))
        images, g = last(single(x), channels), last(single(gradient), channels)
        _, first, outputs = _largest(images, kernel, how)
        found = how.padded(np.zeros(images.shape, np.float64))
        for place, tap in enumerate(np.ndindex(*kernel)):
            met = how.met(found, tap, outputs)
            met += np.where(first == place, g, 0.0)
        return narrowed(back(how.inner(found), channels), x.dtype)

    @define(f"{name}GradGrad")
    def twice(given: Attributes, x: Array, y: Array, gradient: Array) -> Array:
        """What was at the place of each maximum."""
        kernel, how, channels = _windows(given, _sides(given, x.shape))
        _, first, outputs = _largest(last(single(x), channels), kernel, how)
        padded = how.padded(last(gradient, channels))
        found = np.zeros(first.shape, gradient.dtype)
        for place, tap in enumerate(np.ndindex(*kernel)):
            found = np.where(first == place, how.met(padded, tap, outputs), found)
        return back(found, channels)


for _dimensions in ("", "3D"):
    _average(f"AvgPool{_dimensions}")
    _maximum(f"MaxPool{_dimensions}")
