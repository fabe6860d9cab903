"""Modified Bessel functions of the first kind: i0, i1, i0e, i1e.

Up to BESSEL_SPLIT by their series in x^2 / 4, beyond by sqrt x exp(-x) I(x), which is smooth in 1 / x: M. Abramowitz and
I. Stegun, Handbook of Mathematical Functions, 9.6.10 and 9.7.1.
"""

from repro.portable.definitions.functions.arithmetic import absolute, polynomial, with_sign
from repro.portable.definitions.functions.exponential import exp
from repro.portable.definitions.xp import Array, Backend
from repro.portable.numbers import polynomials
from repro.portable.numbers.polynomials import BESSEL_SPLIT


def _bessel(xp: Backend, x: Array, order: int, bits: int, scaled: bool) -> Array:
    """I(x) of |x|; times exp(-|x|) where scaled."""
    near = xp.clip(x, -1.0, BESSEL_SPLIT)
    y = polynomial(xp, near * near * 0.25, polynomials.bessel_near(order, bits))
    y = y * near if order else y
    four = 4.0 / xp.where(x > BESSEL_SPLIT, x, BESSEL_SPLIT)  # 1 / x would be subnormal for the largest numbers
    z = polynomial(xp, four * 0.25 - 0.5 / BESSEL_SPLIT, polynomials.bessel_far(order, bits)) * (xp.sqrt(four) * 0.5)
    if scaled:
        return xp.where(x > BESSEL_SPLIT, z, y * exp(xp, -near, bits))
    half = exp(xp, xp.where(x > BESSEL_SPLIT, x * 0.5, 1.0), bits)
    return xp.where(x > BESSEL_SPLIT, xp.where(x < xp.inf, z * half * half, x), y)


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
