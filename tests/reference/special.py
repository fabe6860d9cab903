"""Reference: special functions of float64, and their rounding."""

import numpy as np

from reference.arithmetic import Array
from reference.functions import exp, log, log1p, polynomial, two_product
from reference.trigonometric import PI, cosine_of_turns, sine_of_turns
from repro.portable.numbers import polynomials
from repro.portable.numbers.polynomials import (
    BESSEL_SPLIT,
    ERF_END,
    ERFC_END,
    ERFC_MIDDLE,
    ERFINV_ENDS,
    ERFINV_SPLIT,
    NDTR_END,
    SHIFTED,
)

# --- error functions --------------------------------------------------------------------------------------------------


def _erf_near(x: Array, bits: int) -> Array:
    x = np.clip(x, -ERF_END[bits], ERF_END[bits])
    return x * polynomial(x * x - ERF_END[bits] ** 2 / 2, polynomials.erf(bits))


def _scaled_erfc(x: Array, bits: int) -> Array:
    """exp(x^2) erfc x."""
    q = 1.0 / (x * 0.25 + 1.0)
    return q * polynomial(q - ERFC_MIDDLE, polynomials.scaled_erfc(bits))


def _erfc_of_positive(x: Array, bits: int, rest: Array | float = 0.0) -> Array:
    y = _scaled_erfc(x, bits)
    if bits == 24:
        return exp(-(x * x), bits) * y
    square, lost = two_product(x, x)
    return exp(-square, bits, -(x * 2.0 * rest + lost)) * y


def erf(x: Array, bits: int = 53) -> Array:
    near = _erf_near(x, bits)
    if bits == 24:
        return near
    far = np.copysign(1.0 - _erfc_of_positive(np.clip(np.abs(x), 0.5, 6.0), bits), x)
    return np.where(np.abs(x) < ERF_END[bits], near, far)


def erfc(x: Array, bits: int = 53, rest: Array | float = 0.0) -> Array:
    y = _erfc_of_positive(np.minimum(np.abs(x), ERFC_END[bits]), bits, np.where(x < 0, -rest, rest))
    y = np.where(x < 0, 2.0 - y, y)
    return np.where((np.abs(x) < 0.5) & (bits == 53), 1.0 - _erf_near(x, bits), y)


def ndtr(x: Array, bits: int = 53) -> Array:
    high, low = polynomials.constant("sqrt 1/2", 52)
    if bits == 24:
        y = exp(x * x * -0.5, bits) * (_scaled_erfc(np.minimum(np.abs(x), NDTR_END) * high, bits) * 0.5)
        return np.where(x > 0, 1.0 - y, y)
    x = np.clip(x, -40.0, 40.0)
    y, lost = two_product(x, -high)
    return erfc(y, bits, x * -low + lost) * 0.5


def log_ndtr(x: Array, bits: int = 53) -> Array:
    z = x * -polynomials.constant("sqrt 1/2")[0]
    inverse = 1.0 / z
    tail = inverse * polynomial(inverse * inverse * 0.5, polynomials.SCALED_ERFC_TAIL)
    tail = tail * polynomials.constant("1 / sqrt pi")[0]
    scaled = np.where(z > ERFC_END[53], tail, _scaled_erfc(np.clip(z, 0.5, ERFC_END[53]), 53))
    left = z * -z + log(scaled * 0.5, bits)
    share = ndtr(np.where(x < 1, x, -x), bits)
    return np.select([x < -1, x < 1], [left, log(share, bits)], log1p(-share, bits))


def _quantile(x: Array, w: Array, bits: int) -> Array:
    """erfinv |x|, of w = -log(1 - x^2)."""
    near = x * polynomial(np.minimum(w, ERFINV_SPLIT) - ERFINV_SPLIT / 2, polynomials.erfinv_near())
    root = np.sqrt(np.clip(w, ERFINV_ENDS[0] ** 2, ERFINV_ENDS[2] ** 2))
    far, farther = (
        root * polynomial(1.0 / root - polynomials.erfinv_middle(part), polynomials.erfinv_far(part)) for part in (0, 1)
    )
    return np.select([w < ERFINV_SPLIT, (bits == 53) & (root > ERFINV_ENDS[1])], [near, farther], far)


def _improved(y: Array, residual: Array) -> Array:
    half = exp(y * y * 0.5)
    step = residual * half * half * polynomials.constant("sqrt pi / 2")[0]
    return y - step / (y * step + 1.0)


def erfinv(x: Array, bits: int = 53) -> Array:
    a = np.abs(x)
    other = 1.0 - a
    y = _quantile(a, -log(np.where(other > 0, other * (1.0 + a), 1.0), bits), bits)
    if bits == 53:
        y = _improved(y, np.where(a < 0.5, erf(y) - a, other - erfc(y)))
    return np.copysign(np.select([a < 1, a == 1], [y, np.inf], np.nan), x)


def ndtri(p: Array, bits: int = 53) -> Array:
    tail = np.where(p < 0.5, p, 1.0 - p)
    sound = np.where(tail > 0, tail, 0.5)
    a = 1.0 - sound * 2.0
    y = _quantile(a, -log(sound * 4.0 * (1.0 - sound), bits), bits)
    if bits == 53:
        better = _improved(y, np.where(a < 0.5, erf(y) - a, sound * 2.0 - erfc(y)))
        y = np.where(sound < 2.0**-1000, y, better)
    y = np.select([tail > 0, tail == 0], [y * polynomials.constant("sqrt 2")[0], np.inf], np.nan)
    return np.where(p < 0.5, -y, y)


# --- gamma function ---------------------------------------------------------------------------------------------------


def lgamma(x: Array, bits: int = 53) -> Array:
    left = x < -(2.0**-60)
    z = np.where(left, 1.0 - x, np.abs(x))
    near = np.minimum(z, SHIFTED)
    whole = np.rint(near)
    product = np.select([whole < 0.5, whole < 1.5], [near * (near + 1.0), near], 1.0)
    for n in range(1, 7):
        product = product * np.where(whole > n + 1.5, near - n, 1.0)
    logarithm = log(np.where(z >= SHIFTED, z, product), bits)
    u = near - whole
    y = u * polynomial(u, polynomials.lgamma(bits)) + np.where(whole < 1.5, -logarithm, logarithm)
    inverse = 1.0 / z
    rest = inverse * polynomial(inverse * inverse, polynomials.stirling(bits))
    far = (z - 0.5) * (logarithm - 1.0) + (rest + (polynomials.constant("ln (2 pi) / 2")[0] - 0.5))
    y = np.where(z >= SHIFTED, far, y)
    sine = np.abs(sine_of_turns(np.where(left, x, 0.5), bits))
    y = np.where(left, polynomials.constant("ln pi")[0] - log(sine, bits) - y, y)
    return np.where((sine == 0) | np.isinf(x), np.inf, y)


def digamma(x: Array, bits: int = 53) -> Array:
    z = np.where(x < 0, 1.0 - x, x)
    turns = np.where(x < 0, x - np.rint(x), 0.25)
    cotangent = cosine_of_turns(turns, bits) / sine_of_turns(turns, bits)
    y = _digamma_of_positive(z, bits)
    y = np.where(x < 0, np.where(turns == 0, np.nan, cotangent * -PI + y), y)
    return np.where(x == 0, -1.0 / x, y)


def _digamma_of_positive(x: Array, bits: int) -> Array:
    high, low = polynomials.constant("root of digamma", 53)
    near = np.where(x < 1, x + 1.0, np.clip(x, 1.0, 2.0))
    y = ((near - high) - low) * polynomial(near - 1.5, polynomials.digamma(bits))
    shifted = (x > 2) & (x < SHIFTED)
    top, bottom = np.where(shifted | (x < 1), 1.0, 0.0), np.where(shifted | (x < 1), x, 1.0)
    for n in range(1, 9):
        factor = x + n
        top, bottom = np.where(shifted, top * factor + bottom, top), np.where(shifted, bottom * factor, bottom)
    z = np.where(shifted, x + 9.0, x)
    inverse = 1.0 / z
    square = inverse * inverse
    far = square * -polynomial(square, polynomials.stirling_derived(bits)) + (log(z, bits) - inverse * 0.5)
    return np.where(x > 2, far, y) - top / bottom


# --- Bessel functions -------------------------------------------------------------------------------------------------


def _bessel(x: Array, order: int, bits: int, scaled: bool) -> Array:
    x = np.abs(x)
    near = np.minimum(x, BESSEL_SPLIT)
    y = polynomial(near * near * 0.25, polynomials.bessel_near(order, bits)) * (near if order else 1.0)
    inverse = 1.0 / np.maximum(x, BESSEL_SPLIT)
    z = polynomial(inverse - 0.5 / BESSEL_SPLIT, polynomials.bessel_far(order, bits)) * np.sqrt(inverse)
    if scaled:
        return np.where(x > BESSEL_SPLIT, z, y * exp(-near, bits))
    half = exp(x * 0.5, bits)
    return np.select([np.isinf(x), x > BESSEL_SPLIT], [x, z * half * half], y)


def i0(x: Array, bits: int = 53) -> Array:
    return _bessel(x, 0, bits, scaled=False)


def i0e(x: Array, bits: int = 53) -> Array:
    return _bessel(x, 0, bits, scaled=True)


def i1(x: Array, bits: int = 53) -> Array:
    return np.copysign(_bessel(x, 1, bits, scaled=False), x)


def i1e(x: Array, bits: int = 53) -> Array:
    return np.copysign(_bessel(x, 1, bits, scaled=True), x)
