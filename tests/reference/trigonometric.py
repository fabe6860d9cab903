"""Reference: trigonometric functions of float64, and their inverses."""

from fractions import Fraction
from typing import Any

import numpy as np

from reference.arithmetic import Array
from reference.functions import polynomial, two_sum
from repro.portable.numbers import polynomials, tables

(PI,) = polynomials.constant("pi")


def sin(x: Array, bits: int = 53) -> Array:
    y = _sine(np.abs(x), 0.0, bits)
    return np.where(np.signbit(x), -y, y)


def cos(x: Array, bits: int = 53) -> Array:
    return _sine(np.abs(x), 0.5, bits)


def tan(x: Array, bits: int = 53) -> Array:
    return sin(x, bits) / cos(x, bits)


def sine_of_turns(x: Array, bits: int = 53) -> Array:
    """sin(pi x)."""
    r = (x - np.rint(x)) * PI
    y = r * r * r * polynomial(r * r, polynomials.sine(bits)) + r
    return np.where(np.fmod(np.rint(x), 2) == 0, y, -y)


def cosine_of_turns(x: Array, bits: int = 53) -> Array:
    """cos(pi x), for |x| <= 1/2."""
    r = (0.5 - np.abs(x)) * PI
    return r * r * r * polynomial(r * r, polynomials.sine(bits)) + r


def sinc(x: Array, bits: int = 53) -> Array:
    return np.where(x == 0, 1.0, sine_of_turns(x, bits) / np.where(x == 0, 1.0, x * PI))


def _sine(x: Array, shift: float, bits: int) -> Array:
    """sin(x + shift pi)."""
    result = np.full(x.shape, np.nan)
    for at in np.ndindex(x.shape):
        if np.isfinite(x[at]):
            k, r, rest = (_near if x[at] < 2.0**20 else _far)(x[at], shift, bits)
            square = r * r
            curve = polynomial(square, polynomials.sine(bits))
            more = rest * (square * -0.5 + 1.0) + square * r * curve if bits == 53 else square * r * curve
            result[at] = (r + more) * (-1) ** int(k)
    return result


def _near(x: Any, shift: float, bits: int):
    """k, r and what r lacks: x = (k - shift) pi + r."""
    k = np.rint(x * polynomials.constant("1 / pi")[0] + shift)
    first, second, *more = polynomials.constant("pi", *((31,) if bits == 24 else (31, 31, 31)))
    r = x - (k - shift) * first
    if bits == 24:
        return k, (k - shift) * -second + r, 0.0
    r, lost = two_sum(r, (k - shift) * -second)
    r, more_lost = two_sum(r, (k - shift) * -more[0])
    return k, r, (k - shift) * -more[1] + (lost + more_lost)


def _far(x: Any, shift: float, bits: int):
    """The same, by an integer product: 1 / pi has 175 bits, of which the first is that of 1."""
    m, e = np.frexp(x)
    row = int(e) + 1022 - tables.FIRST_EXPONENT
    inverse = sum(int(table[row]) << 25 * place for place, table in enumerate(tables.inverse_pi()))
    turns = int(m * 2**53) * inverse % 2**175
    digits = [float(turns >> 25 * place & 2**25 - 1) * 2.0 ** (25 * place - 174) for place in range(7)]
    k = np.rint(np.float64(digits[6] + shift))
    part, rest = two_sum((digits[6] - (k - shift)) + digits[5], digits[4] + digits[3])
    high, low = polynomials.constant("pi", 52)
    r = part * high
    lost = float(Fraction(float(part)) * Fraction(high) - Fraction(float(r)))
    return k, r, part * low + ((rest + digits[2]) * high + lost)


# --- inverse functions ------------------------------------------------------------------------------------------------


def atan2(y: Array, x: Array, bits: int = 53) -> Array:
    a, b = np.abs(y), np.abs(x)
    both = np.isinf(a) & np.isinf(b)
    a, b = np.where(both, 1.0, a), np.where(both, 1.0, b)
    if bits == 53:
        large, small = np.fmax(a, b) > 2.0**1000, np.maximum(a, b) < 2.0**-1000
        scale = np.where(large, 0.25, np.where(small, 2.0**100, 1.0))
        a, b = a * scale, b * scale
    low = a <= b * 0.4142135623730951
    high = ~low & (b < a * 0.4142135623730951)
    t = np.select([a == 0, low, high], [0.0, a / b, -b / a], (a - b) / (a + b))
    quarters = np.select([low, high], [0.0, 2.0], 1.0)
    angle = t * t * t * polynomial(t * t, polynomials.arctangent(bits)) + t
    back = np.signbit(x)
    quarters, angle = np.where(back, 4.0 - quarters, quarters), np.where(back, -angle, angle)
    first, rest = (part / 4 for part in polynomials.constant("pi", 53))
    result = quarters * first + (quarters * rest + angle)
    return np.where(np.isnan(x) | np.isnan(y), np.nan, np.copysign(result, y))


def atan(x: Array, bits: int = 53) -> Array:
    return atan2(x, np.ones_like(x), bits)


def asin(x: Array, bits: int = 53) -> Array:
    return atan2(x, np.sqrt((1.0 - x) * (1.0 + x)), bits)


def acos(x: Array, bits: int = 53) -> Array:
    return atan2(np.sqrt((1.0 - x) * (1.0 + x)), x, bits)
