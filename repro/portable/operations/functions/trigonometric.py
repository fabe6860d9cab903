"""Trigonometric functions: sin, cos, tan.

x = k pi + r with |r| <= pi / 2 and sin x = (-1)^k sin r; for cos k is an integer and a half. Up to LARGE pi is
subtracted in parts whose products with k are exact: W. Cody and W. Waite, Software Manual for the Elementary Functions,
chapter 8. Beyond, x / pi is taken modulo 2 from the digits of 1 / pi that matter for the exponent of x: M. Payne and
R. Hanek, Radian Reduction for Trigonometric Functions, SIGNUM 18 (1983).
"""

from decimal import Decimal, localcontext
from functools import cache

from repro.portable import coefficients, tables
from repro.portable.operations.functions.arithmetic import (
    SIGN,
    absolute,
    from_integer,
    odd,
    plus,
    polynomial,
    two_product,
    two_sum,
)
from repro.portable.tables import DIGIT_BITS, DIGITS, FIRST_EXPONENT, LAST_EXPONENT
from repro.portable.xp import Array, Backend

LARGE = 2.0**20
TERMS = {24: 6, 53: 8}
"""Of (sin r - r) / r^3."""


@cache
def _rest(bits: int) -> tuple[float, ...]:
    """(sin r - r) / r^3 in r^2: -1 / 3! + r^2 / 5! - ..."""
    function = coefficients.series(Decimal(-1) / 6, lambda n: Decimal(-1) / ((2 * n + 2) * (2 * n + 3)))
    return coefficients.interpolated(function, 0.0, 2.4675, TERMS[bits])


@cache
def _pi(bits: int) -> tuple[float, ...]:
    """1 / pi, and pi in parts: of 31 bits, but the last."""
    with localcontext() as context:
        context.prec = coefficients.DIGITS
        inverse = float(1 / coefficients.PI)
    return (inverse, *coefficients.parts(coefficients.PI, *((31,) if bits == 24 else (31, 31, 31))))


def sin(xp: Backend, x: Array, bits: int = 53, large: bool = True) -> Array:
    """Without `large` the arguments are below LARGE in magnitude, infinite or NaN: quicker, with the same bits."""
    y = _sine(xp, absolute(xp, x), 0.0, bits, large)
    return xp.number(xp.pattern(y) ^ (xp.pattern(x) & SIGN))


def cos(xp: Backend, x: Array, bits: int = 53, large: bool = True) -> Array:
    """The sine of what is half of pi more."""
    return _sine(xp, absolute(xp, x), 0.5, bits, large)


def tan(xp: Backend, x: Array, bits: int = 53, large: bool = True) -> Array:
    """sin / cos."""
    return sin(xp, x, bits, large) / cos(xp, x, bits, large)


def _sine(xp: Backend, x: Array, shift: float, bits: int, large: bool) -> Array:
    """sin(x + shift pi), x not negative."""
    k, r, rest = _near(xp, x, shift, bits)
    if large:
        far = x >= LARGE
        k, r, rest = (xp.where(far, a, b) for a, b in zip(_far(xp, x, shift), (k, r, rest), strict=True))
    square = r * r
    curve = square * r * polynomial(xp, square, _rest(bits))
    if bits == 53:
        curve = plus(xp, rest, plus(xp, square, -0.5, 1.0), curve)
    return xp.number(xp.pattern(r + curve) ^ odd(xp, k))


def _near(xp: Backend, x: Array, shift: float, bits: int) -> tuple[Array, Array, Array]:
    """k, r, and what r lacks."""
    inverse, first, second, *more = _pi(bits)
    k = xp.rint(plus(xp, x, inverse, shift))
    turns = k - shift
    r = x - turns * first
    if not more:
        return k, r - turns * second, r
    r, lost = two_sum(xp, r, turns * -second)
    r, more_lost = two_sum(xp, r, turns * -more[0])
    return k, r, plus(xp, turns, -more[1], lost + more_lost)


def _far(xp: Backend, x: Array, shift: float) -> tuple[Array, Array, Array]:
    """The same, of x from LARGE on: the product of two integers, digit by digit, modulo 2 ** 175."""
    pattern = xp.pattern(x)
    row = xp.clip(xp.integer(xp.shift_right(pattern, 52)) - FIRST_EXPONENT, 0, LAST_EXPONENT - FIRST_EXPONENT)
    inverse = [xp.take(table, row) for table in xp.tables(x, tables.inverse_pi)]
    significand = pattern & (2**52 - 1) | 2**52
    factors = [
        from_integer(xp, xp.shift_right(significand, DIGIT_BITS * place) & (2**DIGIT_BITS - 1)) for place in range(3)
    ]
    digits, carry = [], 0.0
    for place in range(DIGITS):
        total = sum((factor * inverse[place - n] for n, factor in enumerate(factors[: place + 1])), carry)
        carry = xp.floor(total * 2.0**-DIGIT_BITS)
        digits.append((total - carry * 2.0**DIGIT_BITS) * 2.0 ** (DIGIT_BITS * (place + 1 - DIGITS) + 1 - DIGIT_BITS))
    *_, third, second, first = digits
    k = xp.rint(first + shift)
    part, rest = two_sum(xp, (first - (k - shift)) + second, third + digits[-4])
    high, low = coefficients.parts(coefficients.PI, 53)
    r, lost = two_product(xp, part, high)
    return k, r, plus(xp, part, low, plus(xp, rest + digits[-5], high, lost))
