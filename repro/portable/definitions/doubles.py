"""Sums and products of float64 numbers, by slices.

A number is cut into slices on a grid: integers so small that their sums, and those of their products, are exact in
float64. The sums of the slices are added from the smallest on, and products of slices below the last one are left out.
So a result is as exact as float64, relative to the largest numbers of its groups.
"""

from collections.abc import Sequence

from repro.portable.definitions.bits import pow2_f64
from repro.portable.definitions.xp import Array, Axes, Backend

SIGNIFICAND = 53
"""Bits of a float64 number."""
SMALLEST = -900
"""Grids are no finer than for numbers of this exponent: all scales are float64 numbers."""


def sum_bits(terms: int) -> int:
    """Bits of slices whose sums of this number of terms are exact."""
    return SIGNIFICAND - 1 - max(1, terms - 1).bit_length()


def product_bits(terms: int) -> int:
    """Bits of the slices of two operands, so that sums of this number of products are exact; float32 holds them."""
    return min(sum_bits(terms) // 2, 24)


def slices(xp: Backend, x: Array, axes: Axes, bits: int, numbers: int = 1) -> tuple[list[Array], Array]:
    """Integers of at most 2^bits, a slice after the other, and 2^(e - bits), the unit of the first.

    e is the least with |x| < 2^e along the axes, which stay with size 1. `numbers`: 1 where the slices hold all bits of
    the largest one, 2 for twice these slices. The unit is NaN where a number of the group is infinite or NaN.
    """
    e = exponent_above(xp, x, axes)
    return cut(xp, x, e, bits, numbers), unit(xp, e, bits)


def exponent_above(xp: Backend, x: Array, axes: Axes) -> Array:
    """The least e >= SMALLEST with |x| < 2^e along the axes, int32, axes of size 1; 1024 where there is none."""
    most = xp.pattern(x) & 0x7FFFFFFFFFFFFFFF
    most = xp.largest(most, axes) if axes else most
    return xp.clip(xp.integer(xp.shift_right(most, SIGNIFICAND - 1)) - 1022, SMALLEST, 1024)


def cut(xp: Backend, x: Array, e: Array, bits: int, numbers: int = 1) -> list[Array]:
    """The slices of numbers on grids of these exponents, which broadcast: see slices."""
    rest, parts = x / pow2_f64(xp, xp.where(e > 1023, 0, e) - bits), []
    for _ in range(-(-numbers * SIGNIFICAND // bits)):
        parts.append(xp.rint(rest))
        rest = (rest - parts[-1]) * 2.0**bits
    return parts


def unit(xp: Backend, e: Array, bits: int) -> Array:
    """The unit of the first slice on a grid of this exponent: see slices."""
    return xp.where(e > 1023, xp.nan, pow2_f64(xp, xp.where(e > 1023, 0, e) - bits))


def joined(parts: Sequence[Array], bits: int) -> Array:
    """Adds up slices, in units of the first."""
    if len(parts) == 1:
        return parts[0]
    total = 0.0
    for part in reversed(parts):
        total = total * 2.0**-bits + part
    return total
