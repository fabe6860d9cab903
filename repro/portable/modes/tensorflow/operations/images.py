"""Images that are turned, moved, or changed in color."""

import numpy as np

from repro.portable.backends.numpy import Array
from repro.portable.modes.tensorflow.dispatcher.dispatch import Attributes, define
from repro.portable.modes.tensorflow.dispatcher.types import as_float32, cast_back
from repro.portable.modes.tensorflow.operations.sums import mean


@define("ImageProjectiveTransformV2", "ImageProjectiveTransformV3")
def projected(given: Attributes, images: Array, transforms: Array, shape: Array, *fill: Array) -> Array:
    """Each pixel is taken from where a projective map has it, in float64, each operation rounded by itself."""
    value = float(fill[0]) if fill else 0.0
    rows, columns = np.meshgrid(np.arange(int(shape[0])) * 1.0, np.arange(int(shape[1])) * 1.0, indexing="ij")
    a0, a1, a2, b0, b1, b2, c0, c1 = (each[:, None, None] for each in transforms.astype(np.float64).T)
    below = (c0 * columns + c1 * rows) + 1.0
    across, down = ((a0 * columns + a1 * rows) + a2) / below, ((b0 * columns + b1 * rows) + b2) / below
    whole = (len(images), *rows.shape)
    across, down = np.broadcast_to(across, whole), np.broadcast_to(down, whole)
    x, mode = as_float32(images).astype(np.float64), given.get("fill_mode", "CONSTANT")
    down, across = _inside(down, x.shape[1], mode), _inside(across, x.shape[2], mode)
    if given["interpolation"] == "NEAREST":
        result = _read(x, np.rint(down), np.rint(across), value)
    else:
        top, left = np.floor(down), np.floor(across)
        low, right = (down - top)[..., None], (across - left)[..., None]
        upper = (1.0 - right) * _read(x, top, left, value) + right * _read(x, top, left + 1.0, value)
        lower = (1.0 - right) * _read(x, top + 1.0, left, value) + right * _read(x, top + 1.0, left + 1.0, value)
        result = (1.0 - low) * upper + low * lower
    return cast_back(np.where((below == 0)[..., None], value, result), images.dtype)


def _inside(place: Array, size: int, mode: str) -> Array:
    """Places beside an image, by what fills it there."""
    if mode == "REFLECT":
        period = 2.0 * size
        place = place - period * np.floor(place * (1.0 / period))
        place = np.where(place >= size, period - 1.0 - place, place)
    elif mode == "WRAP":
        place = place - size * np.floor(place * (1.0 / size))
    elif mode != "NEAREST":
        return place
    return np.clip(place, 0.0, size - 1.0)


def _read(x: Array, rows: Array, columns: Array, value: float) -> Array:
    """Pixels [B, H', W', C] of images [B, H, W, C]; a value where there is none."""
    there = (rows >= 0) & (rows < x.shape[1]) & (columns >= 0) & (columns < x.shape[2])
    row, column = (np.where(there, each, 0.0).astype(np.int64) for each in (rows, columns))
    return np.where(there[..., None], x[np.arange(len(x))[:, None, None], row, column], value)


@define("AdjustContrastv2")
def contrast(given: Attributes, images: Array, factor: Array) -> Array:
    """(x - mean) factor + mean, for each channel of an image."""
    x = np.ascontiguousarray(as_float32(images))
    middle = mean(x, (x.ndim - 3, x.ndim - 2)).astype(np.float64)
    return cast_back((x.astype(np.float64) - middle) * float(factor) + middle, images.dtype)


@define("AdjustSaturation")
def saturated(given: Attributes, images: Array, factor: Array) -> Array:
    x = _hue_of_color(as_float32(images).astype(np.float64))
    x[..., 1] = np.clip(x[..., 1] * float(factor), 0.0, 1.0)
    return cast_back(_color_of_hue(x), images.dtype)


@define("AdjustHue")
def turned(given: Attributes, images: Array, turns: Array) -> Array:
    x = _hue_of_color(as_float32(images).astype(np.float64))
    hue = x[..., 0] + float(turns)
    x[..., 0] = hue - np.floor(hue)
    return cast_back(_color_of_hue(x), images.dtype)


@define("RGBToHSV")
def hue_of_color(given: Attributes, images: Array) -> Array:
    return cast_back(_hue_of_color(as_float32(images).astype(np.float64)), images.dtype)


def _hue_of_color(x: Array) -> Array:
    red, green, blue = x[..., 0], x[..., 1], x[..., 2]
    value = x.max(-1)
    span = value - x.min(-1)
    saturation = np.where(value > 0, span / np.where(value > 0, value, 1.0), 0.0)
    share = 1.0 / (6.0 * np.where(span > 0, span, 1.0))
    hue = np.where(
        red == value,
        (green - blue) * share,
        np.where(green == value, (blue - red) * share + 2.0 / 6.0, (red - green) * share + 4.0 / 6.0),
    )
    hue = np.where(span > 0, np.where(hue < 0, hue + 1.0, hue), 0.0)
    return np.stack([hue, saturation, value], -1)


@define("HSVToRGB")
def color_of_hue(given: Attributes, images: Array) -> Array:
    return cast_back(_color_of_hue(as_float32(images).astype(np.float64)), images.dtype)


def _color_of_hue(x: Array) -> Array:
    hue, saturation, value = x[..., 0] * 6.0, x[..., 1], x[..., 2]
    parts = np.abs(hue - 3.0) - 1.0, 2.0 - np.abs(hue - 2.0), 2.0 - np.abs(hue - 4.0)
    shades = [((np.clip(part, 0.0, 1.0) - 1.0) * saturation + 1.0) * value for part in parts]
    return np.stack(shades, -1)
