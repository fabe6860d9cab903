"""Images in other sizes."""

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from repro.portable.backends.numpy import Array
from repro.portable.definitions.resampling import SMOOTH_SHARPNESS, Taps, cubic_weight, transposed
from repro.portable.modes.tensorflow.dispatcher.dispatch import Attributes, define
from repro.portable.modes.tensorflow.dispatcher.types import as_float32, cast_back
from repro.portable.modes.tensorflow.operations.resampling import along, resampled, spread

How = tuple[bool, bool]
"""align_corners and half_pixel_centers."""


def _places(size: int, outputs: int, how: How) -> np.ndarray:
    """The place of each output among the inputs, float64."""
    corners, half = how
    place = np.arange(outputs, dtype=np.float64)
    if corners and outputs > 1:
        return place * ((size - 1) / (outputs - 1))
    return (place + 0.5) * (size / outputs) - 0.5 if half else place * (size / outputs)


@lru_cache(maxsize=1024)
def linear(size: int, outputs: int, how: How) -> Taps:
    place = np.clip(_places(size, outputs, how), 0, size - 1)
    first = np.floor(place)
    index = np.minimum(np.stack([first, first + 1], 1).astype(np.int64), size - 1)
    return Taps(size, index, np.stack([1 - (place - first), place - first], 1))


@lru_cache(maxsize=1024)
def cubic(size: int, outputs: int, how: How) -> Taps:
    """With half_pixel_centers what lies outside does not count."""
    place, sharpness = _places(size, outputs, how), SMOOTH_SHARPNESS if how[1] else -0.75
    first = np.floor(place)
    distances = np.stack([place - first + 1, place - first, 1 - (place - first), 2 - (place - first)], 1)
    index = first.astype(np.int64)[:, None] + np.arange(-1, 3)
    weight = cubic_weight(distances, sharpness)
    if how[1]:
        weight = np.where((index < 0) | (index >= size), 0.0, weight)
        total = weight[:, 0] + weight[:, 1] + weight[:, 2] + weight[:, 3]
        weight = weight / total[:, None]
    return Taps(size, np.clip(index, 0, size - 1), weight)


@lru_cache(maxsize=1024)
def nearest(size: int, outputs: int, how: How) -> Taps:
    """The taps of the nearest pixels, by float32 arithmetic."""
    corners, half = how
    if corners and outputs > 1:
        place = np.arange(outputs, dtype=np.float32) * (np.float32(size - 1) / np.float32(outputs - 1))
        index = np.floor(place + np.float32(0.5))
    else:
        place = np.arange(outputs, dtype=np.float32) + np.float32(0.5 if half else 0)
        index = np.floor(place * (np.float32(size) / np.float32(outputs)))
    return Taps(size, np.clip(index.astype(np.int64), 0, size - 1)[:, None])


@lru_cache(maxsize=1024)
def area(size: int, outputs: int, corners: bool) -> Taps:
    """The shares of the inputs that an output covers."""
    step = (size - 1) / (outputs - 1) if corners and outputs > 1 else size / outputs
    begin = (np.arange(outputs) * step)[:, None]
    end = (np.arange(1, outputs + 1) * step)[:, None]
    index = np.floor(begin) + np.arange(int(np.ceil(step)) + 1)
    weight = np.maximum(np.minimum(end, index + 1) - np.maximum(begin, index), 0.0) / step
    return Taps(size, np.clip(index, 0, size - 1).astype(np.int64), weight)


@define("ResizeArea")
def resized_by_area(given: Attributes, x: Array, size: Array) -> Array:
    """The means of what outputs cover, float32."""
    if x.ndim != 4 or min(size) < 1 or not x.size:
        raise ValueError(f"images {list(x.shape)} cannot have sides {list(size)}")
    sides = zip(x.shape[1:3], map(int, size), strict=True)
    return resampled(x.astype(np.float32), [area(*each, bool(given["align_corners"])) for each in sides])


@define("MirrorPadGrad")
def mirrored(given: Attributes, gradient: Array, edges: Array) -> Array:
    """Adds what was mirrored at each edge to what it was made of, axis by axis."""
    result, same = as_float32(gradient).astype(np.float64), int(given["mode"] == "SYMMETRIC")
    for axis, (before, after) in enumerate(edges.tolist()):
        size = result.shape[axis] - before - after
        index = np.arange(-before, size + after)
        index = np.where(index < 0, -index - same, index)
        index = np.where(index >= size, 2 * size - 2 + same - index, index)
        result = along(result, axis, transposed(Taps(size, index[:, None])))
    return cast_back(result, gradient.dtype)


def _interpolation(name: str, taps: Callable[[int, int, How], Taps], single_result: bool) -> None:
    def axes(given: Attributes, sizes: tuple[int, ...], outputs: tuple[int, ...]) -> list[Taps]:
        how = bool(given["align_corners"]), bool(given["half_pixel_centers"])
        return [taps(size, number, how) for size, number in zip(sizes, outputs, strict=True)]

    @define(name)
    def forward(given: Attributes, x: Array, size: Array) -> Array:
        if x.ndim != 4 or min(size) < 1 or not x.size:
            raise ValueError(f"images {list(x.shape)} cannot have sides {list(size)}")
        wide = x.astype(np.float32) if single_result and x.dtype != np.float64 else x
        result = resampled(wide, axes(given, x.shape[1:3], tuple(map(int, size))))
        return result.astype(np.float32) if single_result else cast_back(result, x.dtype)

    @define(f"{name}Grad")
    def backward(given: Attributes, gradient: Array, like: Array) -> Array:
        """`like` are the images, or their sides."""
        sizes = tuple(map(int, like)) if like.ndim == 1 else like.shape[1:3]
        result = spread(as_float32(gradient), axes(given, sizes, gradient.shape[1:3]))
        return cast_back(result, gradient.dtype if like.ndim == 1 else like.dtype)


_interpolation("ResizeBilinear", linear, True)
_interpolation("ResizeBicubic", cubic, True)
_interpolation("ResizeNearestNeighbor", nearest, False)
