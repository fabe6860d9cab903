"""Images that are scaled and moved, smoothed as they get smaller."""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from repro.portable.backends.numpy import Array, Backend
from repro.portable.definitions.functions import DOUBLE
from repro.portable.definitions.functions.exponential import exp
from repro.portable.definitions.functions.trigonometric import sin
from repro.portable.definitions.resampling import SMOOTH_SHARPNESS, Taps, cubic_weight, ranges
from repro.portable.modes.tensorflow.dispatcher.dispatch import Attributes, define
from repro.portable.modes.tensorflow.dispatcher.types import cast_back
from repro.portable.modes.tensorflow.operations.resampling import resampled, spread

Kernel = Callable[[Array], Array]
"""Weights at distances of at least 0."""


def _lanczos(radius: float) -> Kernel:
    def weight(x: Array) -> Array:
        angle = np.where(x > 1e-3, x, 1.0) * math.pi
        waves = sin(Backend, angle, DOUBLE, large=False) * sin(Backend, angle * (1.0 / radius), DOUBLE, large=False)
        return np.where(x > radius, 0.0, np.where(x > 1e-3, waves * radius / (angle * angle), 1.0))

    return weight


def _mitchell(x: Array) -> Array:
    near = ((7.0 / 6.0) * x - 2.0) * x * x + 8.0 / 9.0
    far = (((-7.0 / 18.0) * x + 2.0) * x - 10.0 / 3.0) * x + 16.0 / 9.0
    return np.where(x < 1.0, near, np.where(x < 2.0, far, 0.0))


KERNELS: dict[str, tuple[float, Kernel]] = {
    "lanczos1": (1.0, _lanczos(1.0)),
    "lanczos3": (3.0, _lanczos(3.0)),
    "lanczos5": (5.0, _lanczos(5.0)),
    "gaussian": (1.5, lambda x: np.where(x < 1.5, exp(Backend, x * x * -2.0), 0.0)),
    "box": (1.0, lambda x: np.where(x < 0.5, 1.0, np.where(x == 0.5, 0.5, 0.0))),
    "triangle": (1.0, lambda x: np.maximum(1.0 - x, 0.0)),
    "keyscubic": (2.0, lambda x: cubic_weight(x, SMOOTH_SHARPNESS)),
    "mitchellcubic": (2.0, _mitchell),
}
"""The reach and the weights of each kernel, as TensorFlow has them."""


@lru_cache(maxsize=1024)
def scaled(size: int, outputs: int, scale: float, move: float, kind: str, smooth: bool) -> Taps:
    """Outputs whose place lies outside of the inputs have none."""
    reach, kernel = KERNELS[kind]
    step = 1.0 / scale
    width = max(step, 1.0) if smooth else 1.0
    place = (np.arange(outputs) + 0.5) * step - step * move
    begins = np.clip(np.ceil(place - reach * width - 0.5), 0, size - 1)
    ends = np.clip(np.floor(place + reach * width - 0.5), 0, size - 1) + 1
    ends = np.where((place < 0) | (place > size), begins, ends)
    taps = ranges(size, tuple(map(int, begins)), tuple(map(int, ends)))
    weight = kernel(np.abs(taps.index + 0.5 - place[:, None]) * (1.0 / width))
    weight = np.where(taps.index < size, weight, 0.0)
    total = weight[:, 0]
    for column in weight.T[1:]:
        total = total + column
    return Taps(size, taps.index, weight / np.where(np.abs(total) < 1e-35, 1.0, total)[:, None])


def _axes(given: Attributes, sizes: tuple[int, ...], outputs: tuple[int, ...], scale: Array, move: Array) -> list[Taps]:
    how = given["kernel_type"], bool(given["antialias"])
    each = zip(sizes, outputs, scale.tolist(), move.tolist(), strict=True)
    return [scaled(*numbers, *how) for numbers in each]


@define("ScaleAndTranslate")
def moved(given: Attributes, images: Array, size: Array, scale: Array, move: Array) -> Array:
    axes = _axes(given, images.shape[1:3], tuple(map(int, size)), scale, move)
    return resampled(images.astype(np.float32), axes)


@define("ScaleAndTranslateGrad")
def gradient(given: Attributes, grad: Array, images: Array, scale: Array, move: Array) -> Array:
    return cast_back(spread(grad, _axes(given, images.shape[1:3], grad.shape[1:3], scale, move)), images.dtype)
