"""Boxes of images that are resized (`crop_and_resize`), and gradients with respect to the images and the boxes."""

from collections.abc import Iterator

import numpy as np
from tensorflow.python.framework import dtypes

from repro.portable.backends.numpy import Array
from repro.portable.modes.tensorflow.dispatcher.dispatch import Attributes, define
from repro.portable.modes.tensorflow.dispatcher.types import as_float32, cast_back
from repro.portable.modes.tensorflow.operations.scatter import added
from repro.portable.modes.tensorflow.operations.sums import total

Corner = tuple[Array, Array, Array]
"""Rows and columns of pixels, and their weights, for each point: [N, H', W']."""


def _places(begin: Array, end: Array, size: int, number: int) -> Array:
    """The places [N, number] of points among pixels, float64: the first and the last are the edges of a box."""
    begin, end = begin.astype(np.float64)[:, None], end.astype(np.float64)[:, None]
    if number == 1:
        return (begin + end) * (0.5 * (size - 1))
    point = np.arange(number, dtype=np.float64)
    return (begin * (number - 1 - point) + end * point) * (size - 1) / (number - 1)


def _points(boxes: Array, sizes: tuple[int, ...], crop: tuple[int, ...]) -> tuple[Array, Array, Array]:
    """The rows and columns of points, [N, H', 1] and [N, 1, W'], and which of them lie in the image."""
    rows = _places(boxes[:, 0], boxes[:, 2], sizes[0], crop[0])[:, :, None]
    columns = _places(boxes[:, 1], boxes[:, 3], sizes[1], crop[1])[:, None, :]
    inside = (rows >= 0) & (rows <= sizes[0] - 1) & (columns >= 0) & (columns <= sizes[1] - 1)
    return np.where(rows == rows, rows, -1.0), np.where(columns == columns, columns, -1.0), inside


def _corners(rows: Array, columns: Array, inside: Array, method: str) -> Iterator[Corner]:
    """The pixels that a point is made of."""
    if method == "nearest":
        yield _whole(np.floor(rows + 0.5), inside), _whole(np.floor(columns + 0.5), inside), inside * 1.0
        return
    top, left = np.floor(rows), np.floor(columns)
    low, right = rows - top, columns - left
    for y, down in ((top, 1.0 - low), (np.ceil(rows), low)):
        for x, across in ((left, 1.0 - right), (np.ceil(columns), right)):
            yield _whole(y, inside), _whole(x, inside), np.where(inside, down * across, 0.0)


def _whole(place: Array, inside: Array) -> Array:
    return np.where(inside, place, 0.0).astype(np.int64)


def _checked(boxes: Array, index: Array, images: int) -> Array:
    if boxes.ndim != 2 or boxes.shape[1] != 4 or index.shape != boxes.shape[:1]:
        raise ValueError(f"boxes {list(boxes.shape)} and their images {list(index.shape)} do not fit")
    if index.size and not (index.min() >= 0 and index.max() < images):
        raise ValueError(f"boxes are not all of {images} images")
    return index.astype(np.int64)[:, None, None]


@define("CropAndResize")
def cropped(given: Attributes, images: Array, boxes: Array, index: Array, size: Array) -> Array:
    """Means of four pixels, or the nearest one, in float64, rounded once to float32."""
    image, crop = _checked(boxes, index, len(images)), tuple(map(int, size))
    rows, columns, inside = _points(boxes, images.shape[1:3], crop)
    x = as_float32(images).astype(np.float64)
    result = np.zeros((len(boxes), *crop, x.shape[-1]))
    for y, across, weight in _corners(rows, columns, inside, given["method"]):
        result = result + x[image, y, across] * weight[..., None]
    result = np.where(inside[..., None], result, given["extrapolation_value"])
    return result.astype(np.float32)


@define("CropAndResizeGradImage")
def gradient_of_images(given: Attributes, gradient: Array, boxes: Array, index: Array, shape: Array) -> Array:
    number, *sides, channels = map(int, shape)
    image, crop = _checked(boxes, index, number), gradient.shape[1:3]
    rows, columns, inside = _points(boxes, tuple(sides), crop)
    places, parts = [np.zeros(0, np.int64)], [np.zeros((0, channels))]
    for y, x, weight in _corners(rows, columns, inside, given["method"]):
        places.append(((image * sides[0] + y) * sides[1] + x)[inside])
        parts.append((gradient.astype(np.float64) * weight[..., None])[inside])
    sums = added(np.concatenate(places), np.concatenate(parts), number * sides[0] * sides[1])
    dtype = dtypes.as_dtype(given["T"]).as_numpy_dtype
    return cast_back(sums.reshape(number, *sides, channels), np.dtype(dtype))


@define("CropAndResizeGradBoxes")
def gradient_of_boxes(given: Attributes, gradient: Array, images: Array, boxes: Array, index: Array) -> Array:
    image, crop, sides = _checked(boxes, index, len(images)), gradient.shape[1:3], images.shape[1:3]
    rows, columns, inside = _points(boxes, sides, crop)
    x = as_float32(images).astype(np.float64)
    corners = [x[image, y, across] for y, across, _ in _corners(rows, columns, inside, "bilinear")]
    top_left, top_right, bottom_left, bottom_right = corners
    low, right = (rows - np.floor(rows))[..., None], (columns - np.floor(columns))[..., None]
    down = (1.0 - right) * (bottom_left - top_left) + right * (bottom_right - top_right)
    across = (1.0 - low) * (top_right - top_left) + low * (bottom_right - bottom_left)
    g = np.where(inside[..., None], gradient.astype(np.float64), 0.0)
    edges: dict[int, Array] = {}
    for axis, slope in enumerate((down * g, across * g)):
        share = np.arange(crop[axis]) / (crop[axis] - 1) if crop[axis] > 1 else np.full(1, 0.5)
        share = share.reshape((-1, 1, 1) if axis == 0 else (-1, 1))
        for edge, weight in ((axis, 1.0 - share), (axis + 2, share)):
            parts = np.ascontiguousarray(slope * (weight * (sides[axis] - 1)))
            edges[edge] = total(parts, (1, 2, 3)).reshape(-1)
    return np.stack([edges[edge] for edge in range(4)], 1).astype(np.float32)
