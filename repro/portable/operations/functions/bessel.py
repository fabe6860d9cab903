"""Modified Bessel functions of the first kind: i0, i1, i0e, i1e.

Up to NEAR by their series in x^2 / 4, beyond by sqrt x exp(-x) I(x), which is smooth in 1 / x: M. Abramowitz and
I. Stegun, Handbook of Mathematical Functions, 9.6.10 and 9.7.1.
"""

from decimal import Decimal
from functools import cache
from itertools import count

from repro.portable import coefficients
from repro.portable.operations.functions.arithmetic import absolute, polynomial, with_sign
from repro.portable.operations.functions.exponential import exp
from repro.portable.xp import Array, Backend

NEAR = 8.0
NEAR_TERMS = {24: 14, 53: 22}
FAR_TERMS = {24: 10, 53: 24}
ASYMPTOTIC = 70
"""From here on the series in 1 / x has 60 digits."""


def _series(order: int, quarter: Decimal) -> Decimal:
    """I0 x, or I1 x / x, of x^2 / 4."""
    first = Decimal(1) / (1 + order)
    return coefficients.series(first, lambda n: Decimal(1) / (n * (n + order)))(quarter)


def _scaled(order: int, inverse: Decimal) -> Decimal:
    """sqrt x exp(-x) I(x)."""
    x = 1 / inverse
    if x < ASYMPTOTIC:
        return x.sqrt() * (-x).exp() * _series(order, x * x / 4) * (x if order else 1)
    total = term = Decimal(1)
    for n in count(1):
        following = -term * (4 * order - (2 * n - 1) ** 2) * inverse / (8 * n)
        if abs(following) >= abs(term) or total + following == total:
            return total / (2 * coefficients.PI).sqrt()
        term = following
        total += term
    raise AssertionError


@cache
def _near(order: int, bits: int) -> tuple[float, ...]:
    return coefficients.interpolated(lambda u: _series(order, u), 0.0, NEAR**2 / 4, NEAR_TERMS[bits])


@cache
def _far(order: int, bits: int) -> tuple[float, ...]:
    """In 1 / x - 1 / (2 NEAR)."""
    half = Decimal(1 / NEAR) / 2
    return coefficients.interpolated(lambda u: _scaled(order, u + half), -half, half, FAR_TERMS[bits])


def _bessel(xp: Backend, x: Array, order: int, bits: int, scaled: bool) -> Array:
    """I(x) of |x|; times exp(-|x|) where scaled."""
    near = xp.clip(x, -1.0, NEAR)
    y = polynomial(xp, near * near * 0.25, _near(order, bits))
    y = y * near if order else y
    inverse = 1.0 / xp.where(x > NEAR, x, NEAR)
    z = polynomial(xp, inverse - 0.5 / NEAR, _far(order, bits)) * xp.sqrt(inverse)
    if scaled:
        return xp.where(x > NEAR, z, y * exp(xp, -near, bits))
    half = exp(xp, xp.where(x > NEAR, x * 0.5, 1.0), bits)
    return xp.where(x > NEAR, xp.where(x < xp.inf, z * half * half, x), y)


def i0(xp: Backend, x: Array, bits: int = 53) -> Array:
    """The function of order 0."""
    return _bessel(xp, absolute(xp, x), 0, bits, scaled=False)


def i0e(xp: Backend, x: Array, bits: int = 53) -> Array:
    """exp(-|x|) i0 x."""
    return _bessel(xp, absolute(xp, x), 0, bits, scaled=True)


def i1(xp: Backend, x: Array, bits: int = 53) -> Array:
    """The function of order 1."""
    return with_sign(xp, _bessel(xp, absolute(xp, x), 1, bits, scaled=False), x)


def i1e(xp: Backend, x: Array, bits: int = 53) -> Array:
    """exp(-|x|) i1 x."""
    return with_sign(xp, _bessel(xp, absolute(xp, x), 1, bits, scaled=True), x)
