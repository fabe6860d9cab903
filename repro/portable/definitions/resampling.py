"""Resampling along an axis, as lists of taps.

Each output is a sum of a few inputs with weights, in a fixed order: pooling, interpolation and their gradients. The taps
follow from sizes alone, by float64 arithmetic.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

SHARPNESS = -0.75
"""The free parameter of cubic convolution, as PyTorch and OpenCV have it."""
SMOOTH_SHARPNESS = -0.5
"""The free parameter of Pillow, which smooths an image as it gets smaller."""


@dataclass(frozen=True, eq=False)
class Taps:
    """The inputs that each output along an axis is the sum of."""

    size: int
    """Inputs along the axis."""
    index: np.ndarray
    """Inputs of each output, int64 [outputs, taps]; `size` where an output has fewer."""
    weight: np.ndarray | None = None
    """Factors, float64 or int32 [outputs, taps]; None where all are 1."""

    @property
    def counts(self) -> np.ndarray:
        """The number of inputs of each output."""
        return (self.index < self.size).sum(1)


@lru_cache(maxsize=1024)
def transposed(taps: Taps) -> Taps:
    """The taps of the gradient: for each input the outputs that it counts in, in their order."""
    outputs, number = taps.index.shape
    flat = taps.index.reshape(-1)
    order = np.argsort(flat, kind="stable")
    order = order[flat[order] < taps.size]
    met = flat[order]
    rank = np.arange(len(met)) - np.searchsorted(met, met)
    index = np.full((taps.size, int(rank.max(initial=-1)) + 1), outputs)
    index[met, rank] = order // number
    if taps.weight is None:
        return Taps(outputs, index)
    weight = np.zeros(index.shape)
    weight[met, rank] = taps.weight.reshape(-1)[order]
    return Taps(outputs, index, weight)


# --- windows ----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def ranges(size: int, begins: tuple[int, ...], ends: tuple[int, ...]) -> Taps:
    """Inputs from a first one to before another one, as far as there are any."""
    begin, end = np.array(begins, np.int64)[:, None], np.array(ends, np.int64)[:, None]
    index = begin + np.arange(max(1, int((end - begin).max(initial=1))))
    return Taps(size, np.where((index >= 0) & (index < np.minimum(end, size)), index, size))


def pooled_size(size: int, kernel: int, stride: int, padding: int, ceil_mode: bool) -> int:
    """Windows along an axis, of which none begins beyond the last number and the padding before the first."""
    number = (size + 2 * padding - kernel + (stride - 1 if ceil_mode else 0)) // stride + 1
    return number - (ceil_mode and (number - 1) * stride >= size + padding)


@lru_cache(maxsize=1024)
def windows(size: int, kernel: int, stride: int, padding: int, ceil_mode: bool) -> tuple[Taps, np.ndarray]:
    """Windows of a pooling, and how many numbers each holds with the padding."""
    begins = [stride * i - padding for i in range(pooled_size(size, kernel, stride, padding, ceil_mode))]
    ends = [min(begin + kernel, size + padding) for begin in begins]
    return ranges(size, tuple(begins), tuple(ends)), np.array(ends) - np.array(begins)


@lru_cache(maxsize=1024)
def adaptive(size: int, outputs: int) -> Taps:
    """Windows that cover the inputs, as PyTorch's adaptive pooling has them."""
    begins = tuple(i * size // outputs for i in range(outputs))
    return ranges(size, begins, tuple(-(-(i + 1) * size // outputs) for i in range(outputs)))


# --- interpolation ----------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def nearest(size: int, outputs: int, scale: float | None, exact: bool) -> Taps:
    """The input that each output repeats, by float32 arithmetic, as PyTorch's GPU kernels have it."""
    step = np.float32(1.0 / scale) if scale else np.float32(size) / np.float32(outputs)
    place = np.arange(outputs, dtype=np.float32) + np.float32(0.5 if exact else 0)
    return Taps(size, np.minimum(np.floor(place * step).astype(np.int64), size - 1)[:, None])


@lru_cache(maxsize=1024)
def whole(taps: Taps) -> tuple[Taps, int]:
    """Taps with integer weights of 15 bits, and how many of these are fractional, as Pillow has it.

    Weights of one input are added before they are rounded, half away from 0.
    """
    assert taps.weight is not None
    index, weight = taps.index, taps.weight.copy()
    for place in range(1, index.shape[1]):
        again = index[:, place] == index[:, place - 1]
        weight[again, place] += weight[again, place - 1]
        weight[again, place - 1] = 0.0
    bits = next(bits for bits in range(23) if bits == 22 or int(0.5 + weight.max() * 2.0 ** (bits + 1)) >= 2**15)
    scaled = weight * 2.0**bits
    return Taps(taps.size, index, np.trunc(scaled + np.where(scaled < 0, -0.5, 0.5)).astype(np.int32)), bits


def _step(size: int, outputs: int, align_corners: bool, scale: float | None) -> float:
    """Inputs from one output to the next."""
    if align_corners:
        return (size - 1) / (outputs - 1) if outputs > 1 else 0.0
    return 1.0 / scale if scale else size / outputs


def _places(size: int, outputs: int, align_corners: bool, scale: float | None) -> np.ndarray:
    step = _step(size, outputs, align_corners, scale)
    place = np.arange(outputs, dtype=np.float64)
    return place * step if align_corners else (place + 0.5) * step - 0.5


@lru_cache(maxsize=1024)
def linear(size: int, outputs: int, align_corners: bool, scale: float | None) -> Taps:
    """Linear between the two inputs beside the place of an output."""
    place = np.clip(_places(size, outputs, align_corners, scale), 0, size - 1)
    first = np.floor(place)
    index = np.minimum(np.stack([first, first + 1], 1).astype(np.int64), size - 1)
    return Taps(size, index, np.stack([1 - (place - first), place - first], 1))


@lru_cache(maxsize=1024)
def cubic(size: int, outputs: int, align_corners: bool, scale: float | None) -> Taps:
    """Cubic convolution of the four inputs around the place of an output; the first and the last are repeated."""
    place = _places(size, outputs, align_corners, scale)
    first = np.floor(place)
    distances = np.stack([place - first + 1, place - first, 1 - (place - first), 2 - (place - first)], 1)
    index = first.astype(np.int64)[:, None] + np.arange(-1, 3)
    return Taps(size, np.clip(index, 0, size - 1), cubic_weight(distances, SHARPNESS))


def cubic_weight(x: np.ndarray, a: float) -> np.ndarray:
    """The kernel of cubic convolution at distances of at least 0."""
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


@lru_cache(maxsize=1024)
def smoothed(size: int, outputs: int, align_corners: bool, scale: float | None, cubic: bool) -> Taps:
    """Interpolation whose kernel grows as an image gets smaller: without aliases, as Pillow has it."""
    step = _step(size, outputs, align_corners, scale)
    reach, share = (2.0 if cubic else 1.0) * max(step, 1.0), 1.0 / max(step, 1.0)
    centers = [step * (i + 0.5) for i in range(outputs)]
    begins = tuple(max(int(center - reach + 0.5), 0) for center in centers)
    taps = ranges(size, begins, tuple(min(int(center + reach + 0.5), size) for center in centers))
    distance = np.abs((taps.index - np.array(centers)[:, None] + 0.5) * share)
    weight = cubic_weight(distance, SMOOTH_SHARPNESS) if cubic else np.maximum(1 - distance, 0.0)
    weight = np.where(taps.index < size, weight, 0.0)
    total = weight[:, 0]
    for column in weight.T[1:]:
        total = total + column
    return Taps(size, taps.index, weight / np.where(total == 0, 1.0, total)[:, None])
