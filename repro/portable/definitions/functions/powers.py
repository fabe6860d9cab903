"""Powers and roots: power, sqrt, rsqrt, cbrt, hypot."""

from repro.portable.definitions.functions.arithmetic import absolute, plus, two_product, with_sign
from repro.portable.definitions.functions.exponential import exp
from repro.portable.definitions.functions.logarithmic import log, log_pair
from repro.portable.definitions.xp import Array, Backend
from repro.portable.numbers import polynomials

BEYOND = 1000.0
"""From here on exp is infinity, and 0 below its negative."""


def sqrt(xp: Backend, x: Array, bits: int = 53) -> Array:
    """The square root, correctly rounded; NaN of negative numbers."""
    # Of -x, not of 0: LLVM makes a maximum of a choice between 0 and x, and that takes 0 for -0.
    return xp.where(x < 0.0, xp.nan, xp.sqrt(xp.where(x < 0.0, -x, x)))


def rsqrt(xp: Backend, x: Array, bits: int = 53) -> Array:
    """1 / sqrt x."""
    return 1.0 / sqrt(xp, x)


def cbrt(xp: Backend, x: Array, bits: int = 53) -> Array:
    """The cube root: exp(log |x| / 3), and one step of Newton's method."""
    size = absolute(xp, x)
    usual = (size > 0.0) & (size < xp.inf)
    size = xp.where(usual, size, 1.0)
    y = exp(xp, log(xp, size) * polynomials.constant("1 / 3")[0])
    # XLA takes numbers of float32 below 2^-126 for 0 in some of these operations: then y is 0, and so is the result.
    y = xp.where(y > 0.0, y - (y - size / y / y) * polynomials.constant("1 / 3")[0], y)
    return xp.where(usual, with_sign(xp, y, x), x)


def hypot(xp: Backend, x: Array, y: Array, bits: int = 53) -> Array:
    """sqrt(x^2 + y^2), scaled by a power of two near the larger one; infinity where one is, even beside NaN."""
    a, b = absolute(xp, x), absolute(xp, y)
    infinite = (a == xp.inf) | (b == xp.inf)
    if bits == 24:
        root = xp.sqrt(a * a + b * b)
    else:
        larger = xp.clip(xp.where(a > b, a, b), 2.0**-1000, 2.0**1022)
        down = xp.number((2046 << 52) - (xp.pattern(larger) & (2047 << 52)))
        c, d = a * down, b * down
        root = xp.sqrt(plus(xp, c, c, d * d)) / down
    return xp.where(infinite, xp.inf, root)


def power(xp: Backend, x: Array, y: Array, bits: int = 53) -> Array:
    """x^y = exp(y log |x|), for float64 with the logarithm and the product in pairs; special cases as IEEE 754's pow."""
    size = absolute(xp, x)
    if bits == 24:
        magnitude = exp(xp, y * log(xp, size), bits)
    else:
        logarithm, rest = log_pair(xp, size)
        product, lost = two_product(xp, y, logarithm)
        inside = absolute(xp, product) < BEYOND
        magnitude = exp(xp, product, bits, xp.where(inside, plus(xp, y, rest, lost), 0.0))
    magnitude = xp.where((y == 0.0) | (size == 1.0), 1.0, magnitude)
    half = y * 0.5
    odd = (xp.floor(y) == y) & (xp.floor(half) != half)
    result = xp.where(odd & (xp.pattern(x) < 0), -magnitude, magnitude)
    undefined = (x < 0.0) & (size < xp.inf) & (xp.floor(y) != y)
    result = xp.where(undefined, xp.nan, result)
    missing = (x != x) & (y != 0.0) | (y != y) & (x != 1.0)
    return xp.where(missing, xp.nan, result)
