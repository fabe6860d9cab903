"""Trigonometric functions: sin, cos, tan.

x = k pi + r with |r| <= pi / 2 and sin x = (-1)^k sin r; for cos k is an integer and a half. Up to LARGE pi is
subtracted in parts whose products with k are exact: W. Cody and W. Waite, Software Manual for the Elementary Functions,
chapter 8. Beyond, x / pi is taken modulo 2 from the digits of 1 / pi that matter for the exponent of x: M. Payne and
R. Hanek, Radian Reduction for Trigonometric Functions, SIGNUM 18 (1983).
"""

from repro.portable.definitions.functions.arithmetic import (
    SIGN,
    absolute,
    from_integer,
    odd,
    plus,
    polynomial,
    two_product,
    two_sum,
)
from repro.portable.definitions.xp import Array, Backend
from repro.portable.numbers import polynomials, tables
from repro.portable.numbers.tables import DIGIT_BITS, DIGITS, FIRST_EXPONENT, LAST_EXPONENT

LARGE = 2.0**20
PARTS_OF_PI = {24: polynomials.constant("pi", 31), 53: polynomials.constant("pi", 31, 31, 31)}
"""The products of all but the last with k are exact."""


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


def sin_of_turns(xp: Backend, x: Array, bits: int = 53) -> Array:
    """sin(pi x)."""
    whole = xp.rint(x)
    y = _sine_near(xp, (x - whole) * polynomials.constant("pi")[0], bits)
    half = whole * 0.5
    return xp.where(xp.floor(half) == half, y, -y)


def cos_of_turns(xp: Backend, x: Array, bits: int = 53) -> Array:
    """cos(pi x), for |x| <= 1/2."""
    return _sine_near(xp, (0.5 - absolute(xp, x)) * polynomials.constant("pi")[0], bits)


def sinc(xp: Backend, x: Array, bits: int = 53) -> Array:
    """sin(pi x) / (pi x), 1 at 0."""
    zero = x == 0.0
    y = sin_of_turns(xp, x, bits) / xp.where(zero, 1.0, x * polynomials.constant("pi")[0])
    return xp.where(zero, 1.0, y)


def _sine_near(xp: Backend, r: Array, bits: int) -> Array:
    """The sine of |r| <= pi / 2."""
    square = r * r
    return plus(xp, square * r, polynomial(xp, square, polynomials.sine(bits)), r)


def _sine(xp: Backend, x: Array, shift: float, bits: int, large: bool) -> Array:
    """sin(x + shift pi), x not negative."""
    k, r, rest = _near(xp, x, shift, bits)
    if large:
        far = x >= LARGE
        k, r, rest = (xp.where(far, a, b) for a, b in zip(_far(xp, x, shift), (k, r, rest), strict=True))
    square = r * r
    curve = polynomial(xp, square, polynomials.sine(bits))
    if bits == 24:
        y = plus(xp, square * r, curve, r)
    else:
        y = r + plus(xp, rest, plus(xp, square, -0.5, 1.0), square * r * curve)
    return xp.number(xp.pattern(y) ^ odd(xp, k))


def _near(xp: Backend, x: Array, shift: float, bits: int) -> tuple[Array, Array, Array]:
    """k, r, and what r lacks."""
    inverse, first, second, *more = (*polynomials.constant("1 / pi"), *PARTS_OF_PI[bits])
    k = xp.rint(plus(xp, x, inverse, shift))
    turns = k - shift
    r = x - turns * first
    if not more:
        return k, plus(xp, turns, -second, r), r
    r, lost = two_sum(xp, r, turns * -second)
    r, more_lost = two_sum(xp, r, turns * -more[0])
    return k, r, plus(xp, turns, -more[1], lost + more_lost)


def _far(xp: Backend, x: Array, shift: float) -> tuple[Array, Array, Array]:
    """Reduce x from LARGE on: the product of two integers, digit by digit, modulo 2 ** 175."""
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
    high, low = polynomials.constant("pi", 52)
    r, lost = two_product(xp, part, high)
    return k, xp.where(x < xp.inf, r, xp.nan), plus(xp, part, low, plus(xp, rest + digits[-5], high, lost))
