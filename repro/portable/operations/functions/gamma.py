"""Gamma function: lgamma and digamma.

From SHIFTED on by Stirling's series; below, x is shifted to the interval of a polynomial by products, which cost one
logarithm or one division; below 0 by reflection: M. Abramowitz and I. Stegun, Handbook of Mathematical Functions, 6.1
and 6.3.
"""

from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from math import comb

from repro.portable import coefficients
from repro.portable.operations.functions.arithmetic import absolute, plus, polynomial
from repro.portable.operations.functions.logarithmic import log
from repro.portable.operations.functions.trigonometric import cos_of_turns, sin_of_turns
from repro.portable.xp import Array, Backend

SHIFTED = 8.5
STIRLING_TERMS = {24: 5, 53: 11}
LGAMMA_TERMS = {24: 14, 53: 20}
DIGAMMA_TERMS = {24: 16, 53: 24}
PI = float(coefficients.PI)
HALF_LOG_OF_TWO_PI = float((2 * coefficients.PI).ln() / 2)
LOG_OF_PI = float(coefficients.PI.ln())


@cache
def _bernoulli(count: int) -> list[Fraction]:
    """B_2, B_4, ..."""
    found: list[Fraction] = []
    for n in range(2 * count + 1):
        found.append(Fraction(n == 0) - sum(Fraction(comb(n, k), n - k + 1) * found[k] for k in range(n)))
    return found[2::2]


def _stirling(terms: int) -> list[Fraction]:
    """lgamma x = (x - 1/2) log x - x + log(2 pi) / 2 + 1 / x times a series in 1 / x^2: its coefficients."""
    return [b / (2 * k * (2 * k - 1)) for k, b in enumerate(_bernoulli(terms), 1)]


def _digamma_series(terms: int) -> list[Fraction]:
    """digamma x = log x - 1 / (2 x) - 1 / x^2 times a series in 1 / x^2."""
    return [b / (2 * k) for k, b in enumerate(_bernoulli(terms), 1)]


def _floats(series: Sequence[Fraction]) -> tuple[float, ...]:
    return tuple(float(each) for each in reversed(series))


def _sum(series: Sequence[Fraction], x: Decimal) -> Decimal:
    total = Decimal(0)
    for each in reversed(series):
        total = total * x + Decimal(each.numerator) / each.denominator
    return total


FAR = 40
"""Where the series has more than 60 digits."""


def _lgamma(x: Decimal) -> Decimal:
    product = Decimal(1)
    for n in range(FAR):
        product *= x + n
    x += FAR
    rest = _sum(_stirling(FAR), 1 / (x * x)) / x
    return (x - Decimal("0.5")) * x.ln() - x + (2 * coefficients.PI).ln() / 2 + rest - product.ln()


def _digamma(x: Decimal) -> Decimal:
    total = -sum(1 / (x + n) for n in range(FAR))
    x += FAR
    return total + x.ln() - 1 / (2 * x) - _sum(_digamma_series(FAR), 1 / (x * x)) / (x * x)


@cache
def _near_two(bits: int) -> tuple[float, ...]:
    """lgamma(2 + u) / u."""
    return coefficients.interpolated(lambda u: _lgamma(2 + u) / u, -0.5, 0.5, LGAMMA_TERMS[bits])


@cache
def _root() -> Decimal:
    """Of digamma, by Newton's method with differences."""
    with localcontext() as context:
        context.prec = coefficients.DIGITS
        x, step = Decimal("1.46"), Decimal(10) ** -25
        for _ in range(8):
            x -= _digamma(x) * step / (_digamma(x + step) - _digamma(x))
        return x


@cache
def _near_root(bits: int) -> tuple[float, ...]:
    """digamma x / (x - root), in x - 3/2."""
    middle, root = Decimal("1.5"), _root()
    function = lambda u: _digamma(u + middle) / (u + middle - root)  # noqa: E731
    return coefficients.interpolated(function, -0.5, 0.5, DIGAMMA_TERMS[bits])


def lgamma(xp: Backend, x: Array, bits: int = 53) -> Array:
    """log |gamma x|: infinity at 0 and at negative integers. Near its other zeros below 0 the error is absolute."""
    left = x < 0.0
    y = _lgamma_of_positive(xp, xp.where(left, 1.0 - x, x), bits)
    sine = absolute(xp, sin_of_turns(xp, xp.where(left, x, 0.5), bits))
    y = xp.where(left, LOG_OF_PI - log(xp, sine, bits) - y, y)
    return xp.where((sine == 0.0) | (absolute(xp, x) == xp.inf), xp.inf, y)


def _lgamma_of_positive(xp: Backend, x: Array, bits: int) -> Array:
    """By lgamma x = log(x - 1) + lgamma(x - 1), as often as needed."""
    near = xp.clip(x, -1.0, SHIFTED)
    whole = xp.rint(near)
    product = xp.where(whole < 1.5, xp.where(whole < 0.5, near * (near + 1.0), near), 1.0)
    for n in range(1, 7):
        product = product * xp.where(whole > n + 1.5, near - n, 1.0)
    far = x >= SHIFTED
    logarithm = log(xp, xp.where(far, x, product), bits)
    u = near - whole
    y = u * polynomial(xp, u, _near_two(bits))
    y = xp.where(whole < 1.5, y - logarithm, y + logarithm)
    inverse = 1.0 / xp.where(far, x, SHIFTED)
    rest = inverse * polynomial(xp, inverse * inverse, _floats(_stirling(STIRLING_TERMS[bits])))
    return xp.where(far, plus(xp, x - 0.5, logarithm - 1.0, rest + (HALF_LOG_OF_TWO_PI - 0.5)), y)


def digamma(xp: Backend, x: Array, bits: int = 53) -> Array:
    """The derivative of lgamma: minus infinity at 0, infinity at -0, NaN at negative integers."""
    left = x < 0.0
    y = _digamma_of_positive(xp, xp.where(left, 1.0 - x, x), bits)
    turns = xp.where(left, x - xp.rint(x), 0.25)
    cotangent = cos_of_turns(xp, turns, bits) / sin_of_turns(xp, turns, bits)
    y = xp.where(left, xp.where(turns == 0.0, xp.nan, plus(xp, cotangent, -PI, y)), y)
    return xp.where(x == 0.0, -1.0 / x, y)


def _digamma_of_positive(xp: Backend, x: Array, bits: int) -> Array:
    """By digamma x = digamma(x + 1) - 1 / x: once below 1, and nine times from 2 on; with one division."""
    high, low = coefficients.parts(_root(), 53)
    first = x < 1.0
    near = xp.where(first, x + 1.0, xp.clip(x, 1.0, 2.0))
    y = ((near - high) - low) * polynomial(xp, near - 1.5, _near_root(bits))
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
    series = square * polynomial(xp, square, _floats(_digamma_series(STIRLING_TERMS[bits])))
    far = log(xp, z, bits) - inverse * 0.5 - series
    return xp.where(x > 2.0, far, y) - numerator / denominator
