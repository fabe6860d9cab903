"""Numbers rounded to those of a few bits, as for a training that knows it will be quantized; each operation rounded by itself."""

from dataclasses import dataclass

import numpy as np

from repro.portable.backends.numpy import Array
from repro.portable.modes.tensorflow.dispatcher.dispatch import Attributes, define
from repro.portable.modes.tensorflow.operations.sums import along, total

# --- of a range that is moved until 0 is one of its numbers -----------------------------------------------------------


@dataclass(frozen=True)
class Grid:
    """Numbers from `low` to `high`, float32, a step apart. Each is a number, or one for each channel."""

    low: Array
    high: Array
    step: Array
    per_step: Array
    none: Array
    """Where the range is 0 alone: such numbers become 0, and gradients pass."""


def _grid(given: Attributes, low: Array, high: Array) -> Grid:
    """The grid of B bits of a range, float32: B. Jacob et al., 1712.05877."""
    first, last = np.float32(given["narrow_range"]), np.float32(2 ** given["num_bits"] - 1)
    none = (low == 0) & (high == 0)
    low, high = np.where(none, np.float32(-1), low), np.where(none, np.float32(1), high)
    step, per_step = (high - low) / (last - first), (last - first) / (high - low)
    zero = first - low / step
    zero = np.clip(np.trunc(zero + np.float32(0.5)), first, last)
    return Grid((first - zero) * step, (last - zero) * step, step, per_step, none)


def _quantized(grid: Grid, x: Array) -> Array:
    half = np.float32(0.5)
    zero = np.floor(-grid.low * grid.per_step + half)
    shifted = np.clip(x, grid.low, grid.high) - grid.low
    return np.where(grid.none, np.float32(0), np.floor(shifted * grid.per_step - zero + half) * grid.step)


def _inside(grid: Grid, x: Array) -> Array:
    return grid.none | ((x >= grid.low) & (x <= grid.high))


def _range(given: Attributes) -> tuple[Array, Array]:
    return np.float32(given["min"]), np.float32(given["max"])


@define("FakeQuantWithMinMaxArgs")
def of_numbers(given: Attributes, x: Array) -> Array:
    return _quantized(_grid(given, *_range(given)), x)


@define("FakeQuantWithMinMaxArgsGradient")
def of_numbers_backward(given: Attributes, gradient: Array, x: Array) -> Array:
    return gradient * _inside(_grid(given, *_range(given)), x).astype(np.float32)


@define("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
def of_range(given: Attributes, x: Array, low: Array, high: Array) -> Array:
    return _quantized(_grid(given, low, high), x)


@define("FakeQuantWithMinMaxVarsGradient", "FakeQuantWithMinMaxVarsPerChannelGradient")
def of_range_backward(
    given: Attributes, gradient: Array, x: Array, low: Array, high: Array
) -> tuple[Array, Array, Array]:
    """The gradients of numbers inside of the range; those of its ends are the sums over what is beyond them."""
    grid = _grid(given, low, high)
    axes = tuple(range(x.ndim - low.ndim))
    beyond = (x < grid.low) & ~grid.none, (x > grid.high) & ~grid.none
    ends = (along(total, gradient * there.astype(np.float32), axes, False) for there in beyond)
    return gradient * _inside(grid, x).astype(np.float32), *ends


# --- of a range about 0 -----------------------------------------------------------------------------------------------


def _ranges(given: Attributes, x: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """The least and the largest number, of all numbers or along an axis, in a shape that broadcasts to x."""
    axis = given["axis"]
    if not given.get("range_given", True):
        others = tuple(each for each in range(x.ndim) if each != axis)
        return x.min(others, keepdims=True), x.max(others, keepdims=True)
    shape = [-1 if each == axis else 1 for each in range(x.ndim)]
    return low.reshape(shape), high.reshape(shape)


def _symmetric(given: Attributes, bits: int, x: Array, low: Array, high: Array) -> Array:
    """x on the grid of integers of some bits, scaled so that it holds the range; what lies outside is at its ends."""
    one = x.dtype.type
    signed, most = given["signed_input"], np.finfo(x.dtype).max
    first = one((-(2 ** (bits - 1)) + bool(given["narrow_range"])) if signed else 0)
    last = one(2 ** (bits - 1) - 1 if signed else 2**bits - 1)
    low, high = _ranges(given, x, low, high)
    from_low = np.where(first * low > 0, first / low, most)
    from_high = np.where(last * high > 0, last / high, most)
    below = from_low < from_high
    scale = np.where(below, from_low, from_high)
    step = np.where(below, low / first, high / last)
    if given.get("range_given", True):
        x = np.clip(x, np.where(below, low, first * step), np.where(below, last * step, high))
    x = x * scale
    rounded = np.floor(x + one(0.5)) if given.get("round_mode") == "HALF_UP" else np.rint(x)
    return rounded * step


@define("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4")
def quantized(given: Attributes, x: Array, low: Array, high: Array) -> Array:
    return _symmetric(given, given["num_bits"], x, low, high)


@define("QuantizeAndDequantizeV3")
def quantized_by_tensor(given: Attributes, x: Array, low: Array, high: Array, bits: Array) -> Array:
    return _symmetric(given, int(bits), x, low, high)


@define("QuantizeAndDequantizeV4Grad")
def quantized_backward(
    given: Attributes, gradient: Array, x: Array, low: Array, high: Array
) -> tuple[Array, Array, Array]:
    """The gradients of numbers inside of the range; its ends have none."""
    least, most = _ranges(given, x, low, high)
    inside = (x >= least) & (x <= most)
    return gradient * inside.astype(x.dtype), np.zeros_like(low), np.zeros_like(high)
