"""Pooling: maxima, and means of windows in a fixed order."""

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
from tensorflow.python.framework import dtypes

from repro.portable.backends.numpy import Array
from repro.portable.compiler.numpy.plan import run
from repro.portable.definitions.resampling import Taps, ranges
from repro.portable.modes.tensorflow.dispatcher.dispatch import Attributes, define, definitions
from repro.portable.modes.tensorflow.dispatcher.types import as_float32, cast_back
from repro.portable.modes.tensorflow.operations.resampling import Share, resampled, spread
from repro.portable.modes.tensorflow.operations.steps import Steps, back, last, steps

BLOCK = 2**17
"""Numbers of the samples that are taken at a time."""


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
    """The taps of each axis, and 1 over the number of numbers in each window: what is outside does not count."""
    result = []
    for size, length, step, edge, number in zip(
        sizes, kernel, how.stride, how.edges, how.outputs(sizes, kernel), strict=True
    ):
        begins = tuple(step * place - edge[0] for place in range(number))
        result.append(ranges(size, begins, tuple(begin + length for begin in begins)))
    counts: Any = 1
    for taps in result:
        counts = np.multiply.outer(counts, taps.counts)
    return result, (1.0 / counts)[..., None]


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


def _by_samples(function: Callable[..., Array], *arrays: Array) -> Array:
    """A function of some samples at a time, so that what it makes stays in a processor's caches."""
    some = max(1, BLOCK // max(1, arrays[0][:1].size))
    parts = [
        function(*(each[begin : begin + some] for each in arrays)) for begin in range(0, max(1, len(arrays[0])), some)
    ]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _largest(x: Array, kernel: Sequence[int], how: Steps) -> tuple[Array, Array, tuple[int, ...]]:
    """The largest number of each window, NaN where it holds one, and the place of the first of equals."""
    edges = ((0, 0), *how.edges, (0, 0))
    padded = np.pad(x, edges, constant_values=-np.inf)
    outputs = how.outputs(x.shape[1:-1], kernel)
    best, first = run((), _chosen, [how.met(padded, tap, outputs) for tap in np.ndindex(*kernel)])
    return best, first, outputs


def _chosen(xp: Any, parts: Sequence[Array]) -> tuple[Array, Array]:
    best, *others = parts
    first = xp.integer(best < best)  # 0
    for place, part in enumerate(others, 1):
        better = (part > best) | (part != part)
        best, first = xp.where(better, part, best), xp.where(better, place, first)
    return best, first


def _to_first(x: Array, largest: Array, gradient: Array, kernel: Sequence[int], how: Steps) -> Array:
    """Adds the gradient to the first of the largest numbers of each window, float64; windows are taken from the last one on.

    So what several windows add to one number is added in the order of its places in them.
    """
    _, first, _ = _largest(x, kernel, how)
    shape = (len(x), *(size + sum(edge) for size, edge in zip(x.shape[1:-1], how.edges, strict=True)), x.shape[-1])
    apart = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    counted = zip(first.shape, (1, *how.stride, 1), apart, strict=True)
    begins = reduce(np.add.outer, (np.arange(number) * (step * size) for number, step, size in counted))
    along = [hole * size for hole, size in zip(how.dilation, apart[1:-1], strict=True)]
    taps = np.array([sum(at * size for at, size in zip(tap, along, strict=True)) for tap in np.ndindex(*kernel)])
    places = (begins + taps[first]).reshape(-1)
    total = np.bincount(places[::-1], gradient.reshape(-1)[::-1], math.prod(shape)).reshape(shape)
    return how.inner(total)


def _to_equal(x: Array, largest: Array, gradient: Array, kernel: Sequence[int], how: Steps) -> Array:
    """Adds the gradient to numbers that equal the largest one, or to NaN where that is NaN, float64, in the order of places."""
    padded, result = np.pad(x, ((0, 0), *how.edges, (0, 0)), constant_values=-np.inf), how.padded(np.zeros(x.shape))
    outputs = largest.shape[1:-1]
    for tap in np.ndindex(*kernel):
        part, met = how.met(padded, tap, outputs), how.met(result, tap, outputs)
        met += np.where((part == largest) | ((part != part) & (largest != largest)), gradient, 0.0)
    return how.inner(result)


def _maximum(name: str) -> None:
    @define(name)
    def forward(given: Attributes, x: Array) -> Array:
        kernel, how, channels = _windows(given, _sides(given, x.shape))
        best = _by_samples(lambda part: _largest(part, kernel, how)[0], last(as_float32(x), channels))
        return cast_back(back(best, channels), x.dtype)

    @define(f"{name}Grad")
    def backward(given: Attributes, x: Array, y: Array, gradient: Array) -> Array:
        """To the first of equals, in volumes to each; where windows overlap, in the order of a window's places."""
        kernel, how, channels = _windows(given, _sides(given, x.shape))
        add: Callable[..., Array] = _to_equal if len(kernel) == 3 else _to_first

        def given_back(*arrays: Array) -> Array:
            return cast_back(add(*arrays, kernel, how), x.dtype)

        images, largest, g = (last(as_float32(each), channels) for each in (x, y, gradient))
        return back(_by_samples(given_back, images, largest, g), channels)

    @define(f"{name}GradGrad")
    def twice(given: Attributes, x: Array, y: Array, gradient: Array) -> Array:
        """The gradient's numbers at the place of each maximum."""
        kernel, how, channels = _windows(given, _sides(given, x.shape))
        _, first, outputs = _largest(last(as_float32(x), channels), kernel, how)
        padded = how.padded(last(gradient, channels))
        result = np.zeros(first.shape, gradient.dtype)
        for place, tap in enumerate(np.ndindex(*kernel)):
            result = np.where(first == place, how.met(padded, tap, outputs), result)
        return back(result, channels)


def _by_tensors(name: str) -> None:
    """An operation whose windows and steps are attributes, as one to which they are tensors."""
    function = definitions[name].function

    @define(f"{name}V2")
    def computed(given: Attributes, *arrays: Array) -> Array:
        *images, ksize, strides = arrays
        return function({**given, "ksize": ksize.tolist(), "strides": strides.tolist()}, *images)


# --- maxima and their places ------------------------------------------------------------------------------------------


def _places(given: Attributes, shape: Sequence[int], first: Array, kernel: Sequence[int], how: Steps) -> Array:
    """The number of each maximum's pixel and channel in its image, or in all images."""
    _, height, width, channels = shape
    outputs = first.shape[1:3]
    rows = np.arange(outputs[0]).reshape(-1, 1, 1) * how.stride[0] - how.edges[0][0] + first // kernel[1]
    columns = np.arange(outputs[1]).reshape(-1, 1) * how.stride[1] - how.edges[1][0] + first % kernel[1]
    rows, columns = np.clip(rows, 0, height - 1), np.clip(columns, 0, width - 1)  # where all numbers are -infinity
    places = (rows.astype(np.int64) * width + columns.astype(np.int64)) * channels + np.arange(channels)
    if given["include_batch_in_index"]:
        places = places + np.arange(len(first)).reshape(-1, 1, 1, 1) * (height * width * channels)
    return places


@define("MaxPoolWithArgmax")
def largest_with_places(given: Attributes, x: Array) -> tuple[Array, Array]:
    kernel, how, _ = _windows(given, x.shape[1:-1])
    best, first, _ = _largest(as_float32(x), kernel, how)
    places = _places(given, x.shape, first, kernel, how)
    return cast_back(best, x.dtype), places.astype(dtypes.as_dtype(given["Targmax"]).as_numpy_dtype)


@define("MaxPoolGradWithArgmax")
def gradient_at_places(given: Attributes, x: Array, gradient: Array, places: Array) -> Array:
    """Added where windows have one maximum, in their order."""
    size = math.prod(x.shape[1:])
    flat = places.reshape(len(places), -1).astype(np.int64)
    if not given["include_batch_in_index"]:
        flat = flat + np.arange(len(places))[:, None] * size
    if flat.size and not (flat.min() >= 0 and flat.max() < x.size):
        raise ValueError(f"places of maxima are not all in {list(x.shape)}")
    sums = np.bincount(flat.reshape(-1), as_float32(gradient).astype(np.float64).reshape(-1), x.size)
    return cast_back(sums.reshape(x.shape), x.dtype)


for _dimensions in ("", "3D"):
    _average(f"AvgPool{_dimensions}")
    _maximum(f"MaxPool{_dimensions}")
for _gradient in ("", "Grad", "GradGrad"):
    _by_tensors(f"MaxPool{_gradient}")
