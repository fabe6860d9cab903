"""Gamma function: lgamma and digamma.

From SHIFTED on by Stirling's series; below, x is shifted to the interval of a polynomial by products, which cost one
logarithm or one division; below 0 by reflection: M. Abramowitz and I. Stegun, Handbook of Mathematical Functions, 6.1
and 6.3.
"""

from repro.portable.definitions.functions.arithmetic import absolute, plus, polynomial
from repro.portable.definitions.functions.logarithmic import log
from repro.portable.definitions.functions.trigonometric import cos_of_turns, sin_of_turns
from repro.portable.definitions.xp import Array, Backend
from repro.portable.numbers import polynomials
from repro.portable.numbers.polynomials import SHIFTED

NEAR = 2.0**-60
"""|gamma x| is 1 / |x| to the last bit of float64 where |x| is smaller."""


def lgamma(xp: Backend, x: Array, bits: int = 53) -> Array:
    """log |gamma x|: infinity at 0 and at negative integers. Near its other zeros below 0 the error is absolute.

    Where |x| is small it is -log |x|, on both sides of 0: by reflection a subnormal number would lose its bits.
    """
    left = x < -NEAR
    y = _lgamma_of_positive(xp, xp.where(left, 1.0 - x, absolute(xp, x)), bits)
    sine = absolute(xp, sin_of_turns(xp, xp.where(left, x, 0.5), bits))
    y = xp.where(left, polynomials.constant("ln pi")[0] - log(xp, sine, bits) - y, y)
    return xp.where((sine == 0.0) | (absolute(xp, x) == xp.inf), xp.inf, y)


def _lgamma_of_positive(xp: Backend, x: Array, bits: int) -> Array:
    """lgamma of positive numbers, by lgamma x = log(x - 1) + lgamma(x - 1), as often as needed."""
    near = xp.clip(x, -1.0, SHIFTED)
    whole = xp.rint(near)
    product = xp.where(whole < 1.5, xp.where(whole < 0.5, near * (near + 1.0), near), 1.0)
    for n in range(1, 7):
        product = product * xp.where(whole > n + 1.5, near - n, 1.0)
    far = x >= SHIFTED
    logarithm = log(xp, xp.where(far, x, product), bits)
    u = near - whole
    y = plus(xp, u, polynomial(xp, u, polynomials.lgamma(bits)), xp.where(whole < 1.5, -logarithm, logarithm))
    inverse = 1.0 / xp.where(far, x, SHIFTED)
    rest = polynomial(xp, inverse * inverse, polynomials.stirling(bits))
    rest = plus(xp, inverse, rest, polynomials.constant("ln (2 pi) / 2")[0] - 0.5)
    return xp.where(far, plus(xp, x - 0.5, logarithm - 1.0, rest), y)


def digamma(xp: Backend, x: Array, bits: int = 53) -> Array:
    """The derivative of lgamma: minus infinity at 0, infinity at -0, NaN at negative integers."""
    left = x < 0.0
    y = _digamma_of_positive(xp, xp.where(left, 1.0 - x, x), bits)
    turns = xp.where(left, x - xp.rint(x), 0.25)
    cotangent = cos_of_turns(xp, turns, bits) / sin_of_turns(xp, turns, bits)
    y = xp.where(left, xp.where(turns == 0.0, xp.nan, plus(xp, cotangent, -polynomials.constant("pi")[0], y)), y)
    return xp.where(x == 0.0, -1.0 / x, y)


def _digamma_of_positive(xp: Backend, x: Array, bits: int) -> Array:
    """digamma of positive numbers, by digamma x = digamma(x + 1) - 1 / x: once below 1, nine times from 2 on."""
    high, low = polynomials.constant("root of digamma", 53)
    first = x < 1.0
    near = xp.where(first, x + 1.0, xp.clip(x, 1.0, 2.0))
    y = ((near - high) - low) * polynomial(xp, near - 1.5, polynomials.digamma(bits))
    shifted = (x > 2.0) & (x < SHIFTED)
    some = first | shifted
    numerator, denominator = xp.f64(xp.where(some, 1.0, 0.0)), xp.where(some, x, 1.0)
    for n in range(1, 9):
        factor = xp.where(shifted, x + float(n), 1.0)
        numerator = plus(xp, numerator, factor, xp.where(shifted, denominator, 0.0))
        denominator = denominator * factor
    z = xp.where(shifted, x + 9.0, x)
    inverse = 1.0 / z
    square = inverse * inverse
    rest = polynomial(xp, square, polynomials.stirling_derived(bits))
    far = plus(xp, square, -rest, log(xp, z, bits) - inverse * 0.5)
    return xp.where(x > 2.0, far, y) - numerator / denominator
