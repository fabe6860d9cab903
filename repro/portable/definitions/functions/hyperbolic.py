"""Hyperbolic functions and their inverses, by exp and log1p."""

from repro.portable.definitions.functions.arithmetic import absolute, plus, polynomial, with_sign
from repro.portable.definitions.functions.exponential import half_exp
from repro.portable.definitions.functions.logarithmic import log1p
from repro.portable.definitions.functions.powers import sqrt
from repro.portable.definitions.xp import Array, Backend
from repro.portable.numbers import polynomials

LARGE = 2.0**60
"""From here on sqrt(x^2 + 1) and sqrt(x^2 - 1) are x."""


def sinh(xp: Backend, x: Array, bits: int = 53) -> Array:
    """(e^x - e^-x) / 2; by its series up to 1."""
    size = absolute(xp, x)
    small = xp.clip(x, -1.0, 1.0)
    square = small * small
    near = plus(xp, square * small, polynomial(xp, square, polynomials.hyperbolic_sine(bits)), small)
    half = half_exp(xp, size, bits)
    return xp.where(size < 1.0, near, with_sign(xp, half - 0.25 * (1.0 / half), x))


def cosh(xp: Backend, x: Array, bits: int = 53) -> Array:
    """(e^x + e^-x) / 2."""
    half = half_exp(xp, absolute(xp, x), bits)
    return half + 0.25 * (1.0 / half)


def asinh(xp: Backend, x: Array, bits: int = 53) -> Array:
    """log(x + sqrt(x^2 + 1)) = log(1 + x + x^2 / (1 + sqrt(x^2 + 1))), for x >= 0."""
    size = absolute(xp, x)
    near = xp.clip(size, -1.0, LARGE)
    square = near * near
    return with_sign(xp, _log(xp, size, near + square / (sqrt(xp, square + 1.0) + 1.0), bits), x)


def acosh(xp: Backend, x: Array, bits: int = 53) -> Array:
    """log(x + sqrt(x^2 - 1)) = log(1 + t + sqrt(t (t + 2))) with t = x - 1; NaN below 1."""
    t = xp.clip(x, -1.0, LARGE) - 1.0
    return _log(xp, x, t + sqrt(xp, t * (t + 2.0)), bits)


def _log(xp: Backend, x: Array, more: Array, bits: int) -> Array:
    """log(1 + more), or log(2 x) where x is large."""
    large = x >= LARGE
    y = log1p(xp, xp.where(large, x, more), bits)
    return xp.where(large, y + polynomials.constant("ln 2")[0], y)


def atanh(xp: Backend, x: Array, bits: int = 53) -> Array:
    """log((1 + x) / (1 - x)) / 2 = log(1 + 2 x / (1 - x)) / 2, for x >= 0; NaN beyond 1."""
    size = absolute(xp, x)
    return with_sign(xp, log1p(xp, (size * 2.0) / (1.0 - size), bits) * 0.5, x)
