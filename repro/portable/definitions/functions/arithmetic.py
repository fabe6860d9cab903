"""Arithmetic that the functions share: polynomials, bits, pairs of numbers."""

from collections.abc import Sequence
from functools import reduce
from typing import Any

from repro.portable.definitions.xp import Array, Backend

SIGN = -(2**63)
MAGNITUDE = 2**63 - 1
INTEGERS = 1.5 * 2.0**52
"""A sum with it, of an integer below 2^51 in magnitude, has the integer in its last bits."""
PATTERN = 0x4338000000000000
"""Its bits."""


def plus(xp: Backend, a, b, c) -> Array:
    """a b + c: the product is rounded before it is added, and so is c where it is another product."""
    return a * b + c


def polynomial(xp: Backend, x: Array, coefficients: Sequence[float]) -> Array:
    """A polynomial by Horner's rule, the last coefficient first."""
    first, second, *rest = coefficients
    return reduce(lambda total, each: plus(xp, total, x, each), rest, plus(xp, x, first, second))


def absolute(xp: Backend, x: Array) -> Array:
    """|x|, also of -0 and of NaN."""
    return xp.number(xp.pattern(x) & MAGNITUDE)


def with_sign(xp: Backend, magnitude: Array, x: Array) -> Array:
    """A number that has no sign, with the sign of x."""
    return xp.number(xp.pattern(magnitude) | (xp.pattern(x) & SIGN))


def power_of_two(xp: Backend, e: Array) -> Array:
    """2^e of integers from -1022 to 1023, float64; 0 for -1023, infinity for 1024, any number for others and NaN."""
    return xp.number(xp.pattern(e + (INTEGERS + 1023.0)) * 2**52)


def from_integer(xp: Backend, n: Array) -> Array:
    """int64 below 2^51 in magnitude, as float64."""
    return xp.number(n + PATTERN) - INTEGERS


def odd(xp: Backend, n: Array) -> Array:
    """The sign bit, int64, where an integer below 2^51 in magnitude, float64, is odd; 0 where it is even."""
    return xp.pattern(n + INTEGERS) * SIGN


def two_sum(xp: Backend, a, b) -> tuple[Array, Array]:
    """a + b, and what its rounding took away: D. Knuth, The Art of Computer Programming 2, section 4.2.2."""
    total = a + b
    other = total - a
    return total, (a - (total - other)) + (b - other)


def two_product(xp: Backend, a, b) -> tuple[Array, Array]:
    """a b, and what its rounding took away: T. Dekker, A Floating-Point Technique for Extending the Precision (1971)."""
    product = a * b
    (c, d), (e, f) = halves(xp, a), halves(xp, b)
    return product, ((c * e - product) + c * f + d * e) + d * f


def halves(xp: Backend, x: Any) -> tuple[Any, ...]:
    """An array, or a number of up to 52 bits, in two parts of 26 bits, whose products are exact."""
    if isinstance(x, float):
        high = float(int(x * 2.0**25)) * 2.0**-25
    else:
        high = xp.number((xp.pattern(x) + 2**26) & -(2**27))
    return high, x - high
