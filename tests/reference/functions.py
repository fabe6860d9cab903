"""Reference: elementary functions of float64, and their rounding.

The formulas of repro/portable/definitions/functions with NumPy's own functions in place of arithmetic on bits, and with
Python's integers. `bits` is 24 or 53, as there. A function of two arrays takes both of one shape.
"""

from fractions import Fraction
from typing import Any

import numpy as np

from reference.arithmetic import Array
from repro.portable.numbers import polynomials

(LN2,), (LN2_HIGH, LN2_LOW) = polynomials.constant("ln 2"), polynomials.constant("ln 2", 42)
ROOT_OF_HALF = float.fromhex("0x1.6a09e667f3bccp-1")


def polynomial(x: Array, coefficients: tuple[float, ...]) -> Array:
    """By Horner's rule."""
    total = np.full_like(x, coefficients[0])
    for each in coefficients[1:]:
        total = total * x + each
    return total


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """a + b, and what its rounding took away."""
    total = a + b
    other = total - a
    return total, (a - (total - other)) + (b - other)


def two_product(a: Array, b: Array | float) -> tuple[Array, Array]:
    """a b, and what its rounding took away, by fractions."""
    product = np.asarray(a * b)
    lost = np.zeros(product.shape)
    for at, (x, y) in zip(np.ndindex(product.shape), np.nditer([a, b]), strict=True):
        if np.isfinite(product[at]):
            lost[at] = float(Fraction(float(x)) * Fraction(float(y)) - Fraction(float(product[at])))
    return product, lost


def times_power_of_two(y: Array, k: Array) -> Array:
    """y 2^k, rounded once."""
    return np.ldexp(y, np.where(np.isnan(k), 0, k).astype(int))


# --- exponential functions --------------------------------------------------------------------------------------------

ENDS = {24: (-700.0, 700.0), 53: (-746.0, 710.0)}


def _power(x: Array, bits: int, rest: Array | float = 0.0) -> tuple[Array, Array]:
    """k and e^r - 1 with x + rest = k ln 2 + r."""
    k = np.rint(x * polynomials.constant("1 / ln 2")[0])
    return k, _small(k * -LN2_LOW + (x - k * LN2_HIGH) + rest, bits)


def _small(r: Array, bits: int) -> Array:
    return r * r * polynomial(r, polynomials.exp(bits)) + r


def exp(x: Array, bits: int = 53, rest: Array | float = 0.0) -> Array:
    k, y = _power(np.clip(x, *ENDS[bits]), bits, rest)
    return times_power_of_two(y + 1.0, k)


def half_exp(x: Array, bits: int = 53) -> Array:
    """e^x / 2."""
    k, y = _power(np.clip(x, ENDS[bits][0] - 1.0, ENDS[bits][1] + 1.0), bits)
    return times_power_of_two(y + 1.0, k - 1.0)


def exp2(x: Array, bits: int = 53) -> Array:
    x = np.clip(x, *{24: (-1000.0, 1000.0), 53: (-1100.0, 1030.0)}[bits])
    k = np.rint(x)
    return times_power_of_two(_small((x - k) * LN2, bits) + 1.0, k)


def expm1(x: Array, bits: int = 53) -> Array:
    k, y = _power(np.clip(x, -50.0, ENDS[bits][1]), bits)
    half = times_power_of_two(np.ones_like(x), k - 1.0)
    return np.where(np.abs(x) < 2.0**-60, x, (half * y + (half - 0.5)) * 2.0)


def sigmoid(x: Array, bits: int = 53) -> Array:
    power = exp(-np.abs(x), bits)
    return np.where(x < 0, power, 1.0) / (power + 1.0)


def tanh(x: Array, bits: int = 53) -> Array:
    u = expm1(np.minimum(np.abs(x), 25.0) * 2.0, bits)
    return np.copysign(u / (u + 2.0), x)


# --- logarithms -------------------------------------------------------------------------------------------------------


def _split(x: Array) -> tuple[Array, Array]:
    """e and f with x = 2^e (1 + f) and sqrt(1/2) <= 1 + f < sqrt 2."""
    m, e = np.frexp(x)
    small = m < ROOT_OF_HALF
    return np.where(small, e - 1, e).astype(float), np.where(small, m * 2.0, m) - 1.0


def _joined(e: Array, f: Array, bits: int) -> Array:
    """log(2^e (1 + f))."""
    s = f / (f + 2.0)
    z = s * s
    rest = z * polynomial(z, polynomials.log(bits))
    if bits == 24:
        return s * (rest + 2.0) + e * LN2
    half = f * f * 0.5
    return e * LN2_HIGH - ((half - (s * (rest + half) + e * LN2_LOW)) - f)


def _logarithm(x: Array, y: Array) -> Array:
    """y where x has a finite logarithm."""
    return np.select([(x > 0) & (x < np.inf), x == np.inf, x == 0], [y, x, -np.inf], np.nan)


def log(x: Array, bits: int = 53) -> Array:
    return _logarithm(x, _joined(*_split(x), bits))


def log2(x: Array, bits: int = 53) -> Array:
    e, f = _split(x)
    return _logarithm(x, _joined(np.zeros_like(e), f, bits) * polynomials.constant("1 / ln 2")[0] + e)


def log10(x: Array, bits: int = 53) -> Array:
    e, f = _split(x)
    high, low = polynomials.constant("log10 2", 42)
    return _logarithm(
        x, e * high + (_joined(np.zeros_like(e), f, bits) * polynomials.constant("1 / ln 10")[0] + e * low)
    )


def log1p(x: Array, bits: int = 53) -> Array:
    total = x + 1.0
    taken = np.where(x >= 1, 1.0 - (total - x), x - (total - 1.0))
    e, f = _split(total)
    f = np.ldexp(taken, -e.astype(int)) + f
    return np.where(x == 0, x, _logarithm(total, _joined(e, f, bits)))


def softplus(x: Array, bits: int = 53) -> Array:
    return np.maximum(x, 0.0) + _log1p_of_exp(x, bits)


def log_sigmoid(x: Array, bits: int = 53) -> Array:
    return np.minimum(x, 0.0) - _log1p_of_exp(x, bits)


def logaddexp(x: Array, y: Array, bits: int = 53) -> Array:
    return np.maximum(x, y) + _log1p_of_exp(np.where(x == y, 0.0, x - y), bits)


def _log1p_of_exp(x: Array, bits: int) -> Array:
    return log1p(exp(-np.abs(x), bits), bits)


def logit(x: Array, bits: int = 53) -> Array:
    other = 1.0 - x
    return np.where(x < 0.25, log(x / other, bits), log1p((x - 0.5) * 2.0 / other, bits))


def xlogy(x: Array, y: Array, bits: int = 53) -> Array:
    return np.where((x == 0) & ~np.isnan(y), 0.0, x * log(y, bits))


def xlog1py(x: Array, y: Array, bits: int = 53) -> Array:
    return np.where((x == 0) & ~np.isnan(y), 0.0, x * log1p(y, bits))


# --- powers -----------------------------------------------------------------------------------------------------------


def sqrt(x: Array, bits: int = 53) -> Array:
    return np.sqrt(x)


def rsqrt(x: Array, bits: int = 53) -> Array:
    return 1.0 / np.sqrt(x)


def hypot(x: Array, y: Array, bits: int = 53) -> Array:
    a, b = np.abs(x), np.abs(y)
    e = np.zeros(a.shape, int)
    if bits == 53:
        e = np.frexp(np.clip(np.fmax(a, b), 2.0**-1000, 2.0**1022))[1] - 1
    c, d = np.ldexp(a, -e), np.ldexp(b, -e)
    return np.where(np.isinf(a) | np.isinf(b), np.inf, np.ldexp(np.sqrt(c * c + d * d), e))


def power(x: Array, y: Array, bits: int = 53) -> Array:
    """x^y. The logarithm of |x| is a pair, as is its product with y."""
    if bits == 24:
        return _signed_power(x, y, exp(y * log(np.abs(x)), bits))
    e, f = _split(np.where(np.isfinite(x) & (x != 0), np.abs(x), 1.0))
    below, below_rest = two_sum(f, np.full_like(f, 2.0))
    s = f / below
    product, lost = two_product(s, below)
    s_rest = (s * -below_rest + ((f - product) - lost)) / below
    z, z_rest = two_product(s, s)
    cube, cube_rest = two_product(s, z)
    cube_rest = s * z_rest + cube_rest
    share, share_rest = polynomials.constant("2 / 3", 52)
    third, third_rest = two_product(cube, share)
    third_rest = cube * share_rest + (cube_rest * share + third_rest)
    rest = cube * z * polynomial(z, polynomials.log_pair()) + third_rest
    rest = rest + (z * (s_rest * 2.0) + s_rest * 2.0)
    first, lost = two_sum(e * LN2_HIGH, s * 2.0)
    first, more_lost = two_sum(first, third)
    logarithm, rest = two_sum(first, e * LN2_LOW + ((lost + more_lost) + rest))
    logarithm = np.select([x == 0, np.isinf(x), np.isnan(x)], [-np.inf, np.inf, np.nan], logarithm)
    product, lost = two_product(y, logarithm)
    return _signed_power(x, y, exp(product, bits, np.where(np.abs(product) < 1000, y * rest + lost, 0.0)))


def _signed_power(x: Array, y: Array, size: Array) -> Array:
    """x^y, of which |x|^y is given."""
    size = np.where((y == 0) | (np.abs(x) == 1), 1.0, size)
    with_sign = np.where(np.signbit(x) & (np.fmod(y, 2) != 0) & (np.fmod(y, 1) == 0), -size, size)
    undefined = (x < 0) & np.isfinite(x) & np.isfinite(y) & (np.floor(y) != y)
    missing = (np.isnan(x) & (y != 0)) | (np.isnan(y) & (x != 1))
    return np.where(undefined | missing, np.nan, with_sign)


# --- hyperbolic functions ---------------------------------------------------------------------------------------------


def sinh(x: Array, bits: int = 53) -> Array:
    half = half_exp(np.abs(x), bits)
    near = x * x * x * polynomial(x * x, polynomials.hyperbolic_sine(bits)) + x
    return np.where(np.abs(x) < 1, near, np.copysign(half - 0.25 / half, x))


def cosh(x: Array, bits: int = 53) -> Array:
    half = half_exp(np.abs(x), bits)
    return half + 0.25 / half


def asinh(x: Array, bits: int = 53) -> Array:
    a = np.abs(x)
    return np.copysign(_inverse(a, a + a * a / (np.sqrt(a * a + 1.0) + 1.0), bits), x)


def acosh(x: Array, bits: int = 53) -> Array:
    t = x - 1.0
    return np.where(x < 1, np.nan, _inverse(x, t + np.sqrt(t * (t + 2.0)), bits))


def _inverse(x: Array, more: Array, bits: int) -> Array:
    return np.where(x >= 2.0**60, log1p(x, bits) + LN2, log1p(more, bits))


def atanh(x: Array, bits: int = 53) -> Array:
    a = np.abs(x)
    return np.copysign(log1p(a * 2.0 / (1.0 - a), bits) * 0.5, x)
