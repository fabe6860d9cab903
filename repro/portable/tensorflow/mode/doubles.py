"""Sums and products of float64 numbers, by slices.

A number is cut into slices on a grid: integers so small that their sums, and those of their products, are exact in
float64. The sums of the slices are added from the smallest on, and products of slices below the last one are left out.
"""

import math
from collections.abc import Callable

import numpy as np

from repro.portable.tensorflow.mode.backend import Array

SIGNIFICAND = 53
SMALLEST = -900
"""Grids are no finer than for numbers of this exponent: all scales are float64 numbers."""


def exponent_above(x: Array, axes: tuple[int, ...]) -> Array:
    """The least e with |x| < 2^e for all numbers along the axes, int64, with axes of size 1."""
    most = (np.ascontiguousarray(x).view(np.int64) & 0x7FFFFFFFFFFFFFFF).max(axes, keepdims=True)
    return np.clip((most >> 52) - 1022, SMALLEST, 1024)


def power_of_two(e: Array) -> Array:
    """2^e for -1022 <= e <= 1023, float64."""
    return ((e + 1023) << 52).view(np.float64)


def slices(x: Array, axes: tuple[int, ...], bits: int, number: int) -> tuple[list[Array], Array]:
    """Integers of at most 2^bits, a slice after the other, and 2^(e - bits), the unit of the first.

    The unit is NaN where a number of the group is infinite or NaN.
    """
    e = exponent_above(x, axes)
    unit = power_of_two(np.where(e > 1023, 0, e) - bits)
    rest, found = x / unit, []
    for _ in range(number):
        found.append(np.rint(rest))
        rest = (rest - found[-1]) * 2.0**bits
    return found, np.where(e > 1023, math.nan, unit)


def number(bits: int) -> int:
    """The slices that hold all of a number as large as the largest of its group."""
    return -(-SIGNIFICAND // bits)


def sum_bits(terms: int) -> int:
    """Bits of slices whose sums of this number of terms are exact."""
    return SIGNIFICAND - 1 - max(1, terms - 1).bit_length()


def total(x: Array, axes: tuple[int, ...], add: Callable[[Array], Array] | None = None) -> Array:
    """The sum along the axes, with axes of size 1; or what another exact sum over them gives, `add`."""
    bits = sum_bits(math.prod(x.shape[axis] for axis in axes))
    parts, unit = slices(x, axes, bits, number(bits))
    found = np.zeros(())
    for part in reversed(parts):
        found = found * 2.0**-bits + (part.sum(axes, keepdims=True) if add is None else add(part))
    return found * unit


def product_bits(terms: int) -> int:
    """Bits of the slices of two operands, so that sums of this number of products are exact; float32 holds them."""
    return min(sum_bits(terms) // 2, 24)


def operand(x: Array, axes: tuple[int, ...], bits: int) -> tuple[list[Array], Array]:
    """The slices of an operand of products, see slices."""
    return slices(x, axes, bits, number(bits))


def multiplied(first: list[Array], second: list[Array], bits: int, multiply: Callable[[Array, Array], Array]) -> Array:
    """What a product of two operands, exact for integers, gives for all slices, in units of the first of both."""
    found = np.zeros(())
    for order in reversed(range(len(first))):
        part = multiply(first[0], second[order])
        for place in range(1, order + 1):
            part = part + multiply(first[place], second[order - place])
        found = found * 2.0**-bits + part
    return found


def product(a: Array, b: Array) -> Array:
    """The product of matrices, [..., M, K] and [..., K, N]: rows and columns on grids of their own."""
    bits = product_bits(a.shape[-1])
    (first, p), (second, s) = operand(a, (-1,), bits), operand(b, (-2,), bits)
    return multiplied(first, second, bits, np.matmul) * p * s
