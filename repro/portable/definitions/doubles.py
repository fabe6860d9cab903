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
    most = xp.largest(xp.pattern(x) & 0x7FFFFFFFFFFFFFFF, axes)
    e = xp.clip(xp.integer(xp.shift_right(most, SIGNIFICAND - 1)) - 1022, SMALLEST, 1024)
    unit = pow2_f64(xp, xp.where(e > 1023, 0, e) - bits)
    rest, parts = x / unit, []
    for _ in range(-(-numbers * SIGNIFICAND // bits)):
        parts.append(xp.rint(rest))
        rest = (rest - parts[-1]) * 2.0**bits
    return parts, xp.where(e > 1023, xp.nan, unit)


def joined(parts: Sequence[Array], bits: int) -> Array:
    """Adds up slices, in units of the first."""
    if len(parts) == 1:
        return parts[0]
    total = 0.0
    for part in reversed(parts):
        total = total * 2.0**-bits + part
    return total
