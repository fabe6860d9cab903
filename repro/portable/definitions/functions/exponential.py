"""Exponential functions: exp, exp2, expm1, sigmoid, tanh.

x = k ln 2 + r with |r| <= ln 2 / 2, and exp x = 2^k exp r: W. Cody and W. Waite, Software Manual for the Elementary
Functions, chapter 6.
"""

from repro.portable.definitions.functions.arithmetic import absolute, plus, polynomial, power_of_two, with_sign
from repro.portable.definitions.xp import Array, Backend
from repro.portable.numbers import polynomials

ENDS = {24: (-700.0, 700.0), 53: (-746.0, 710.0)}
"""Beyond them exp is 0 and infinity, in float32 and in float64: also where a number of float32 is multiplied by it."""

TINY = 2.0**-60
"""e^x - 1 is x to the last bit of float64 where |x| is smaller."""


def ln2() -> tuple[float, ...]:
    """In two parts, the first of 42 bits: its product with an exponent is exact."""
    return polynomials.constant("ln 2", 42)


def _reduced(xp: Backend, x: Array, bits: int, rest: Array | float = 0.0) -> tuple[Array, Array]:
    """k, an integer, and exp r - 1, of magnitudes up to 2^10, for x + rest."""
    (inverse,), (high, low) = polynomials.constant("1 / ln 2"), ln2()
    k = xp.rint(x * inverse)
    return k, _expm1_of_small(xp, plus(xp, k, -low, x - k * high) + rest, bits)


def _expm1_of_small(xp: Backend, r: Array, bits: int) -> Array:
    return plus(xp, r * r, polynomial(xp, r, polynomials.exp(bits)), r)


def _scaled(xp: Backend, y: Array, k: Array, bits: int) -> Array:
    """y 2^k, in two steps where one would leave the range of float64 before the result does."""
    if bits == 24:
        return y * power_of_two(xp, k)
    half = xp.rint(k * 0.5)
    return y * power_of_two(xp, half) * power_of_two(xp, k - half)


def exp(xp: Backend, x: Array, bits: int = 53, rest: Array | float = 0.0) -> Array:
    """e^(x + rest), of a rest that is not more than what the rounding of x took away."""
    k, y = _reduced(xp, xp.clip(x, *ENDS[bits]), bits, rest)
    return _scaled(xp, y + 1.0, k, bits)


def half_exp(xp: Backend, x: Array, bits: int = 53) -> Array:
    """e^x / 2, which is finite where e^x may not be."""
    lowest, highest = ENDS[bits]
    k, y = _reduced(xp, xp.clip(x, lowest - 1.0, highest + 1.0), bits)
    return _scaled(xp, y + 1.0, k - 1.0, bits)


def exp2(xp: Backend, x: Array, bits: int = 53) -> Array:
    """2^x = 2^k exp(r ln 2) with |r| <= 1/2."""
    x = xp.clip(x, -1100.0, 1030.0) if bits == 53 else xp.clip(x, -1000.0, 1000.0)
    k = xp.rint(x)
    y = _expm1_of_small(xp, (x - k) * polynomials.constant("ln 2")[0], bits)
    return _scaled(xp, y + 1.0, k, bits)


def expm1(xp: Backend, x: Array, bits: int = 53) -> Array:
    """e^x - 1 = 2 (2^(k - 1) (exp r - 1) + (2^(k - 1) - 1/2)): near 0 with k = 0 the sum is exact.

    Where |x| is small it is x itself, whose half may be too small for a framework.
    """
    k, y = _reduced(xp, xp.clip(x, -50.0, ENDS[bits][1]), bits)
    half = power_of_two(xp, k - 1.0)
    return xp.where(absolute(xp, x) < TINY, x, 2.0 * plus(xp, half, y, half - 0.5))


def sigmoid(xp: Backend, x: Array, bits: int = 53) -> Array:
    """1 / (1 + e^-x), for x < 0 as e^x / (1 + e^x)."""
    return sigmoids(xp, x, bits)[0]


def sigmoids(xp: Backend, x: Array, bits: int = 53) -> tuple[Array, Array]:
    """sigmoid x and sigmoid(-x), by one power."""
    power = exp(xp, -absolute(xp, x), bits)
    below = power + 1.0
    return xp.where(x < 0.0, power, 1.0) / below, xp.where(x < 0.0, 1.0, power) / below


def tanh(xp: Backend, x: Array, bits: int = 53) -> Array:
    """u / (u + 2) with u = e^(2 |x|) - 1."""
    u = expm1(xp, xp.clip(absolute(xp, x), -1.0, 25.0) * 2.0, bits)
    return with_sign(xp, u / (u + 2.0), x)
