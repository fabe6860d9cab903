"""Exponential functions: exp, exp2, expm1, sigmoid, tanh.

x = k ln 2 + r with |r| <= ln 2 / 2, and exp x = 2^k exp r: W. Cody and W. Waite, Software Manual for the Elementary
Functions, chapter 6.
"""

from decimal import Decimal, localcontext
from functools import cache

from repro.portable import coefficients
from repro.portable.operations.functions.arithmetic import absolute, plus, polynomial, power_of_two, with_sign
from repro.portable.xp import Array, Backend

LN2 = float.fromhex("0x1.62e42fefa39efp-1")
TERMS = {24: 7, 53: 11}
"""Of (exp r - 1 - r) / r^2: an error of 2^-38 and of 2^-60 of exp r."""
ENDS = {24: (-110.0, 90.0), 53: (-746.0, 710.0)}
"""Beyond them exp is 0 and infinity, in float32 and in float64."""


@cache
def constants() -> tuple[float, float, float]:
    """1 / ln 2; ln 2 in two parts, the first of 42 bits: its product with k is exact."""
    with localcontext() as context:
        context.prec = coefficients.DIGITS
        ln2 = Decimal(2).ln()
        return (float(1 / ln2), *coefficients.parts(ln2, 42))  # type: ignore[return-value]


@cache
def _rest(bits: int) -> tuple[float, ...]:
    """(exp r - 1 - r) / r^2 = 1 / 2! + r / 3! + ..."""
    function = coefficients.series(Decimal(1) / 2, lambda n: Decimal(1) / (n + 2))
    return coefficients.interpolated(function, -0.347, 0.347, TERMS[bits])


def _reduced(xp: Backend, x: Array, bits: int) -> tuple[Array, Array]:
    """k, an integer, and exp r - 1, of magnitudes up to 2^10."""
    inverse, high, low = constants()
    k = xp.rint(x * inverse)
    return k, _expm1_of_small(xp, plus(xp, k, -low, x - k * high), bits)


def _expm1_of_small(xp: Backend, r: Array, bits: int) -> Array:
    return plus(xp, r * r, polynomial(xp, r, _rest(bits)), r)


def _scaled(xp: Backend, y: Array, k: Array, bits: int) -> Array:
    """y 2^k, in two steps where one would leave the range of float64 before the result does."""
    if bits == 24:
        return y * power_of_two(xp, k)
    half = xp.rint(k * 0.5)
    return y * power_of_two(xp, half) * power_of_two(xp, k - half)


def exp(xp: Backend, x: Array, bits: int = 53) -> Array:
    """e^x."""
    k, y = _reduced(xp, xp.clip(x, *ENDS[bits]), bits)
    return _scaled(xp, y + 1.0, k, bits)


def exp2(xp: Backend, x: Array, bits: int = 53) -> Array:
    """2^x = 2^k exp(r ln 2) with |r| <= 1/2."""
    x = xp.clip(x, -1100.0, 1030.0) if bits == 53 else xp.clip(x, -160.0, 130.0)
    k = xp.rint(x)
    y = _expm1_of_small(xp, (x - k) * LN2, bits)
    return _scaled(xp, y + 1.0, k, bits)


def expm1(xp: Backend, x: Array, bits: int = 53) -> Array:
    """e^x - 1 = 2 (2^(k - 1) (exp r - 1) + (2^(k - 1) - 1/2)): near 0 with k = 0 the sum is exact."""
    k, y = _reduced(xp, xp.clip(x, -50.0, ENDS[bits][1]), bits)
    half = power_of_two(xp, k - 1.0)
    return xp.where(x == 0.0, x, 2.0 * plus(xp, half, y, half - 0.5))


def sigmoid(xp: Backend, x: Array, bits: int = 53) -> Array:
    """1 / (1 + e^-x), for x < 0 as e^x / (1 + e^x)."""
    power = exp(xp, -absolute(xp, x), bits)
    return xp.where(x < 0.0, power, 1.0) / (power + 1.0)


def tanh(xp: Backend, x: Array, bits: int = 53) -> Array:
    """u / (u + 2) with u = e^(2 |x|) - 1."""
    u = expm1(xp, xp.clip(absolute(xp, x), -1.0, 25.0) * 2.0, bits)
    return with_sign(xp, u / (u + 2.0), x)
