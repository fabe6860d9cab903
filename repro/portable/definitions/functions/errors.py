"""Error functions: erf, erfc, and the normal distribution's ndtr.

erf x = x P(x^2) near 0. Elsewhere erfc x = exp(-x^2) q P(q) with q = 1 / (1 + x / 4) for x >= 0: exp(x^2) erfc x is
smooth in q up to infinity, as in M. Shepherd and J. Laframboise, Chebyshev Approximation of (1 + 2x) exp(x^2) erfc x
(1981).
"""

from repro.portable.definitions.functions.arithmetic import absolute, plus, polynomial, two_product, with_sign
from repro.portable.definitions.functions.exponential import exp
from repro.portable.definitions.functions.logarithmic import log, log1p
from repro.portable.definitions.xp import Array, Backend
from repro.portable.numbers import polynomials
from repro.portable.numbers.polynomials import ERF_END, ERFC_END, ERFC_MIDDLE, NDTR_END, SCALED_ERFC_TAIL


def _erf_near(xp: Backend, x: Array, bits: int) -> Array:
    return x * polynomial(xp, plus(xp, x, x, ERF_END[bits] ** 2 * -0.5), polynomials.erf(bits))


def _scaled_of_positive(xp: Backend, x: Array, bits: int) -> Array:
    """exp(x^2) erfc x, of 0 <= x <= ERFC_END."""
    q = 1.0 / (x * 0.25 + 1.0)
    return q * polynomial(xp, q - ERFC_MIDDLE, polynomials.scaled_erfc(bits))


def _erfc_of_positive(xp: Backend, x: Array, bits: int, rest: Array | None = None) -> Array:
    """erfc of 0 <= x <= ERFC_END, or of x + rest."""
    y = _scaled_of_positive(xp, x, bits)
    if bits == 24:
        return exp(xp, -(x * x), bits) * y
    square, lost = two_product(xp, x, x)
    if rest is not None:
        lost = plus(xp, x * 2.0, rest, lost)
    return exp(xp, -square, bits, -lost) * y


def erf(xp: Backend, x: Array, bits: int = 53) -> Array:
    """2 / sqrt pi times the integral of exp(-t^2) from 0 to x."""
    end = ERF_END[bits]
    y = _erf_near(xp, xp.clip(x, -end, end), bits)
    if bits == 24:
        return y
    far = 1.0 - _erfc_of_positive(xp, xp.clip(absolute(xp, x), 0.5, 6.0), bits)
    return xp.where(absolute(xp, x) < end, y, with_sign(xp, far, x))


def erfc(xp: Backend, x: Array, bits: int = 53) -> Array:
    """1 - erf x."""
    return _erfc(xp, x, bits, None)


def ndtr(xp: Backend, x: Array, bits: int = 53) -> Array:
    """The distribution function of the normal distribution, erfc(-x / sqrt 2) / 2."""
    high, low = polynomials.constant("sqrt 1/2", 52)
    if bits == 24:
        size = xp.clip(absolute(xp, x), -1.0, NDTR_END)
        y = exp(xp, x * x * -0.5, bits) * (_scaled_of_positive(xp, size * high, bits) * 0.5)
        return xp.where(x > 0.0, 1.0 - y, y)
    x = xp.clip(x, -40.0, 40.0)
    y, lost = two_product(xp, x, -high)
    return _erfc(xp, y, bits, plus(xp, x, -low, lost)) * 0.5


def ndtr_of_small(xp: Backend, x: Array) -> Array:
    """The normal distribution function of |x| <= 1, always with 53 bits: (1 + erf(x / sqrt 2)) / 2."""
    z = xp.clip(x, -1.0, 1.0) * polynomials.constant("sqrt 1/2")[0]
    return _erf_near(xp, z, 53) * 0.5 + 0.5


def _erfc(xp: Backend, x: Array, bits: int, rest: Array | None) -> Array:
    size = absolute(xp, x)
    if rest is not None:
        rest = xp.where(x < 0.0, -rest, rest)
    y = _erfc_of_positive(xp, xp.clip(size, -1.0, ERFC_END[bits]), bits, rest)
    y = xp.where(x < 0.0, 2.0 - y, y)
    return y if bits == 24 else xp.where(size < 0.5, 1.0 - _erf_near(xp, xp.clip(x, -1.0, 1.0), bits), y)


def erfcx(xp: Backend, x: Array, bits: int = 53) -> Array:
    """exp(x^2) erfc x: 2 exp(x^2) less that of -x, for x < 0."""
    size = absolute(xp, x)
    left = xp.clip(x, -30.0, 0.0)
    square, lost = two_product(xp, left, left)
    y = _scaled_of_any(xp, size)
    return xp.where(x < 0.0, exp(xp, square, 53, lost) * 2.0 - y, y)


def _scaled_of_any(xp: Backend, z: Array) -> Array:
    """exp(z^2) erfc z; beyond ERFC_END (1 - 1 / (2 z^2) + 3 / (2 z^2)^2 - ...) / (z sqrt pi)."""
    beyond = z > ERFC_END[53]
    inverse = 1.0 / xp.where(beyond, z, ERFC_END[53])
    tail = inverse * polynomial(xp, inverse * inverse * 0.5, SCALED_ERFC_TAIL) * polynomials.constant("1 / sqrt pi")[0]
    return xp.where(beyond, tail, _scaled_of_positive(xp, xp.clip(z, -1.0, ERFC_END[53]), 53))


def log_ndtr(xp: Backend, x: Array, bits: int = 53) -> Array:
    """log ndtr x, which for x < 0 is log(exp(z^2) erfc(z) / 2) - z^2 with z = -x / sqrt 2.

    Beyond ERFC_END exp(z^2) erfc z is (1 - 1 / (2 z^2) + 3 / (2 z^2)^2 - ...) / (z sqrt pi).
    """
    z = x * -polynomials.constant("sqrt 1/2")[0]
    beyond = z > ERFC_END[53]
    inverse = 1.0 / xp.where(beyond, z, ERFC_END[53])
    tail = inverse * polynomial(xp, inverse * inverse * 0.5, SCALED_ERFC_TAIL) * polynomials.constant("1 / sqrt pi")[0]
    scaled = xp.where(beyond, tail, _scaled_of_positive(xp, xp.clip(z, 0.5, ERFC_END[53]), 53))
    left = plus(xp, z, -z, log(xp, scaled * 0.5, bits))
    share = ndtr(xp, xp.where(x < 1.0, x, -x), bits)
    return xp.where(x < -1.0, left, xp.where(x < 1.0, log(xp, share, bits), log1p(xp, -share, bits)))
