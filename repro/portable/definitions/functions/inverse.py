"""Inverse trigonometric functions: atan2, atan, asin, acos.

atan(y / x), for x, y >= 0, is atan t + 0, pi / 4 or pi / 2 with t = y / x, (y - x) / (y + x) or -x / y, whose magnitude
is at most tan(pi / 8) = sqrt 2 - 1.
"""

from repro.portable.definitions.functions.arithmetic import absolute, plus, polynomial, with_sign
from repro.portable.definitions.functions.powers import sqrt
from repro.portable.definitions.xp import Array, Backend
from repro.portable.numbers import polynomials

TANGENT = 0.4142135623730951
LARGEST = 2.0**1000


def atan2(xp: Backend, y: Array, x: Array, bits: int = 53) -> Array:
    """The angle of the point (x, y), from -pi to pi; the sign of 0 counts, as C's atan2 has it."""
    a, b = absolute(xp, y), absolute(xp, x)
    both = (a == xp.inf) & (b == xp.inf)
    a, b = xp.where(both, 1.0, a), xp.where(both, 1.0, b)
    if bits == 53:  # or the sum of the two could be infinite, or a product too small
        large, small = (a > LARGEST) | (b > LARGEST), (a < 1.0 / LARGEST) & (b < 1.0 / LARGEST)
        scale = xp.f64(xp.where(large, 2.0**-2, xp.where(small, 2.0**100, 1.0)))
        a, b = a * scale, b * scale
    low, high = a <= b * TANGENT, b < a * TANGENT
    above = xp.where(low, a, xp.where(high, -b, a - b))
    below = xp.where(low, b, xp.where(high, a, a + b))
    t = xp.where(a == 0.0, 0.0, above / xp.where(a == 0.0, 1.0, below))
    square = t * t
    quarters = xp.where(low, 0.0, xp.f64(xp.where(high, 2.0, 1.0)))
    back = xp.pattern(x) < 0
    quarters = xp.where(back, 4.0 - quarters, quarters)
    first, rest = (part * 0.25 for part in polynomials.constant("pi", 53))
    angle = plus(xp, square * t, polynomial(xp, square, polynomials.arctangent(bits)), t)
    angle = xp.where(back, -angle, angle)
    angle = plus(xp, quarters, first, plus(xp, quarters, rest, angle))
    return with_sign(xp, xp.where((x != x) | (y != y), xp.nan, absolute(xp, angle)), y)


def atan(xp: Backend, x: Array, bits: int = 53) -> Array:
    """The angle of which x is the tangent."""
    return atan2(xp, x, xp.where(x == x, 1.0, x), bits)


def asin(xp: Backend, x: Array, bits: int = 53) -> Array:
    """The angle of which x is the sine; NaN beyond 1."""
    return atan2(xp, x, sqrt(xp, (1.0 - x) * (1.0 + x)), bits)


def acos(xp: Backend, x: Array, bits: int = 53) -> Array:
    """The angle of which x is the cosine; NaN beyond 1."""
    return atan2(xp, sqrt(xp, (1.0 - x) * (1.0 + x)), x, bits)
