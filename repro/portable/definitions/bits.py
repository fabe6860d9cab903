"""Types, exponents and powers of two, by the bits of floats."""

from repro.portable.definitions.xp import Array, Axes, Backend
from repro.portable.numbers.constants import SMALLEST


def is_float64(x: Array) -> bool:
    """True for an array of float64, whatever the framework; all others are float32."""
    size = x.dtype.itemsize if hasattr(x.dtype, "itemsize") else x.dtype.size  # as TensorFlow has it
    return size == 8


def exponent_above(xp: Backend, x: Array, axes: Axes) -> Array:
    """The least e >= -100 with |x| < 2^e along the axes, or of each number: float32 -> int32, axes of size 1.

    128 from 2^127 on, and where there is a NaN.
    """
    largest = xp.pattern(x) & 0x7FFFFFFF
    largest = xp.largest(largest, axes) if axes else largest
    return xp.clip(xp.shift_right(largest, 23) - 126, SMALLEST, 128)


def exponent(xp: Backend, x: Array) -> Array:
    """The e with 2^e <= x < 2^(e + 1), of positive numbers: float64 -> int32."""
    return xp.integer(xp.shift_right(xp.pattern(x), 52) - 1023)


def pow2_f32(xp: Backend, e: Array) -> Array:
    """2^e, int32 -> float32, for -126 <= e <= 127."""
    return xp.number(xp.shift_left(e + 127, 23))


def pow2_f64(xp: Backend, e: Array) -> Array:
    """2^e, int32 -> float64, for -1022 <= e <= 1023."""
    return xp.number(xp.shift_left(xp.int64(e) + 1023, 52))
