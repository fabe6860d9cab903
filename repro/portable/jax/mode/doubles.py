"""Sums and products of float64 numbers, by slices.

As repro/portable/pytorch/mode/doubles.py: integers so small that their sums, and those of their products, are exact.
"""

import math
from collections.abc import Callable

from jax import Array, lax
from jax import numpy as jnp

SIGNIFICAND = 53
SMALLEST = -900
"""Grids are no finer than for numbers of this exponent: all scales are float64 numbers."""


def slices(x: Array, axes: tuple[int, ...], bits: int) -> tuple[list[Array], Array]:
    """Integers of at most 2^bits, a slice after the other, and 2^(e - bits), the unit of the first.

    e is the least with |x| < 2^e along the axes. The unit is NaN where a number of the group is infinite or NaN.
    """
    pattern = lax.bitcast_convert_type(x, jnp.int64) & 0x7FFFFFFFFFFFFFFF
    e = jnp.clip((pattern.max(axes, keepdims=True) >> 52) - 1022, SMALLEST, 1024)
    unit = _power_of_two(jnp.where(e > 1023, 0, e) - bits)
    rest, found = x / unit, []
    for _ in range(-(-SIGNIFICAND // bits)):
        found.append(lax.round(rest, lax.RoundingMethod.TO_NEAREST_EVEN))
        rest = (rest - found[-1]) * 2.0**bits
    return found, jnp.where(e > 1023, math.nan, unit)


def _power_of_two(e: Array) -> Array:
    return lax.bitcast_convert_type((e + 1023) << 52, jnp.float64)


def joined(parts: list[Array], bits: int) -> Array:
    found = jnp.zeros(())
    for part in reversed(parts):
        found = found * 2.0**-bits + part
    return found


def bits_of_sums(terms: int) -> int:
    """Bits of slices whose sums are exact."""
    return SIGNIFICAND - 1 - max(1, terms - 1).bit_length()


def bits_of_products(terms: int) -> int:
    """Bits of the slices of two operands, so that sums of this number of products are exact."""
    return min(bits_of_sums(terms) // 2, 24)


def total(x: Array, axes: tuple[int, ...]) -> Array:
    """The sum along the axes, with axes of size 1."""
    if not x.size:
        return x.sum(axes, keepdims=True)
    bits = bits_of_sums(math.prod(x.shape[axis] for axis in axes))
    parts, unit = slices(x, axes, bits)
    return joined([part.sum(axes, keepdims=True) for part in parts], bits) * unit


def scan(x: Array, axis: int, reverse: bool) -> Array:
    """Sums of the first numbers along an axis."""
    bits = bits_of_sums(x.shape[axis])
    parts, unit = slices(x, (axis,), bits)
    return joined([lax.cumsum(part, axis, reverse) for part in parts], bits) * unit


def product(
    a: Array, b: Array, axes: tuple[tuple[int, ...], tuple[int, ...]], terms: int, multiply: Callable[..., Array]
) -> tuple[Array, Array, Array]:
    """What a product of two operands, exact for integers, gives for their slices; and the units of both.

    `axes` are those of the groups of both.
    """
    bits = bits_of_products(terms)
    (first, p), (second, s) = slices(a, axes[0], bits), slices(b, axes[1], bits)
    parts = []
    for order in range(len(first)):
        part = multiply(first[0], second[order])
        for place in range(1, order + 1):
            part = part + multiply(first[place], second[order - place])
        parts.append(part)
    return joined(parts, bits), p, s
