"""Functions of complex numbers, by those of real ones: W. Kahan, Branch Cuts for Complex Elementary Functions (1987).

Pairs of float64 go in and come out. An error is relative to the absolute value of the result, not to each part.
"""

from collections.abc import Callable

from repro.portable.definitions.complexes import (
    Pair,
    angle,
    direction,
    exponential,
    logarithm,
    over,
    root,
    size,
    times,
)
from repro.portable.definitions.functions.arithmetic import absolute, plus, with_sign
from repro.portable.definitions.functions.exponential import exp, expm1
from repro.portable.definitions.functions.hyperbolic import asinh, cosh, sinh
from repro.portable.definitions.functions.inverse import atan, atan2
from repro.portable.definitions.functions.logarithmic import log1p
from repro.portable.definitions.functions.trigonometric import cos, sin
from repro.portable.definitions.xp import Backend
from repro.portable.numbers import polynomials

FLAT = 350.0
"""From here on the real part of tanh is 1, and the imaginary one is below 1e-300."""


def _turned(function: Callable[[Backend, Pair], Pair]) -> Callable[[Backend, Pair], Pair]:
    """-i f(i z) of f, as sin is of sinh."""

    def of_turned(xp: Backend, z: Pair) -> Pair:
        real, imaginary = function(xp, (-z[1], z[0]))
        return imaginary, -real

    return of_turned


def _constant(name: str) -> float:
    return polynomials.constant(name)[0]


# --- hyperbolic and trigonometric -------------------------------------------------------------------------------------


def hyperbolic_sine(xp: Backend, z: Pair) -> Pair:
    imaginary = cosh(xp, z[0]) * sin(xp, z[1])
    return sinh(xp, z[0]) * cos(xp, z[1]), xp.where(z[1] == 0, z[1], imaginary)


def hyperbolic_cosine(xp: Backend, z: Pair) -> Pair:
    imaginary = sinh(xp, z[0]) * sin(xp, z[1])
    return cosh(xp, z[0]) * cos(xp, z[1]), xp.where((z[0] == 0) | (z[1] == 0), z[0] * z[1], imaginary)


def hyperbolic_tangent(xp: Backend, z: Pair) -> Pair:
    """(sinh a cosh a + i sin b cos b) / (sinh(a)^2 + cos(b)^2): no difference of near numbers."""
    a = xp.clip(z[0], -FLAT, FLAT)
    sine, cosine, high, turn = sinh(xp, a), cosh(xp, a), sin(xp, z[1]), cos(xp, z[1])
    below = plus(xp, sine, sine, turn * turn)
    return sine * cosine / below, high * turn / below


sine, tangent = _turned(hyperbolic_sine), _turned(hyperbolic_tangent)


def cosine(xp: Backend, z: Pair) -> Pair:
    return hyperbolic_cosine(xp, (-z[1], z[0]))


# --- their inverses ---------------------------------------------------------------------------------------------------


def _roots(xp: Backend, z: Pair) -> tuple[Pair, Pair]:
    """The square roots of 1 - z and 1 + z."""
    return root(xp, (1.0 - z[0], -z[1])), root(xp, (z[0] + 1.0, z[1]))


def arcsine(xp: Backend, z: Pair) -> Pair:
    (a, b), (c, d) = _roots(xp, z)
    return atan2(xp, z[0], plus(xp, a, c, -(b * d))), asinh(xp, plus(xp, a, d, -(b * c)))


def arccosine(xp: Backend, z: Pair) -> Pair:
    (a, b), (c, d) = _roots(xp, z)
    return atan2(xp, a, c) * 2.0, asinh(xp, plus(xp, c, b, -(d * a)))


def hyperbolic_arccosine(xp: Backend, z: Pair) -> Pair:
    (a, b), (c, d) = root(xp, (z[0] - 1.0, z[1])), root(xp, (z[0] + 1.0, z[1]))
    return asinh(xp, plus(xp, a, c, b * d)), atan2(xp, b, c) * 2.0


def hyperbolic_arctangent(xp: Backend, z: Pair) -> Pair:
    """log(1 + 4 a / ((1 - a)^2 + b^2)) / 4, for a >= 0, and the angle of (1 - a)(1 + a) - b^2 + 2 b i, halved."""
    a, b = absolute(xp, z[0]), z[1]
    away = 1.0 - a
    infinite = (a == xp.inf) | (absolute(xp, b) == xp.inf)
    share = xp.where(infinite, 0.0, a * 4.0 / plus(xp, away, away, b * b))
    turn = atan2(xp, b * 2.0, plus(xp, away, a + 1.0, -(b * b)))
    turn = xp.where(infinite, with_sign(xp, atan(xp, a * 0.0 + xp.inf), b) * 2.0, turn)
    return with_sign(xp, log1p(xp, share) * 0.25, z[0]), turn * 0.5


hyperbolic_arcsine, arctangent = _turned(arcsine), _turned(hyperbolic_arctangent)

# --- exponential ones -------------------------------------------------------------------------------------------------


def power_of_two(xp: Backend, z: Pair) -> Pair:
    """2^z; its angle is that of z times ln 2, rounded to float64."""
    return exponential(xp, (z[0] * _constant("ln 2"), z[1] * _constant("ln 2")))


def exponential_less_1(xp: Backend, z: Pair) -> Pair:
    """exp(z) - 1: the real part is (exp(a) - 1) cos b - 2 sin(b / 2)^2."""
    half = sin(xp, z[1] * 0.5)
    return plus(xp, expm1(xp, z[0]), cos(xp, z[1]), half * half * -2.0), exp(xp, z[0]) * sin(xp, z[1])


def logarithm_of_1_more(xp: Backend, z: Pair) -> Pair:
    """log(1 + z): the real part is log(1 + a (a + 2) + b^2) / 2 near 0."""
    more = (z[0] + 1.0, z[1])
    near = size(xp, z) < 0.5
    small = tuple(xp.where(near, each, 0.0) for each in z)
    square = plus(xp, small[0], small[0] + 2.0, small[1] * small[1])
    return xp.where(near, log1p(xp, square) * 0.5, logarithm(xp, more)[0]), angle(xp, more)


def _logarithm(name: str) -> Callable[[Backend, Pair], Pair]:
    def of_base(xp: Backend, z: Pair) -> Pair:
        real, imaginary = logarithm(xp, z)
        return real * _constant(name), imaginary * _constant(name)

    return of_base


def inverse_root(xp: Backend, z: Pair) -> Pair:
    return over(xp, (xp.where(z[0] == z[0], 1.0, z[0]), z[1] * 0.0), root(xp, z))


def logistic(xp: Backend, z: Pair) -> Pair:
    """1 / (1 + exp(-z)), or exp(z) / (1 + exp(z)) on the left."""
    left = z[0] < 0
    power = exponential(xp, tuple(xp.where(left, each, -each) for each in z))
    above = xp.where(left, power[0], 1.0), xp.where(left, power[1], 0.0)
    return over(xp, above, (power[0] + 1.0, power[1]))


def power(xp: Backend, z: Pair, exponent: Pair) -> Pair:
    """exp(exponent log z); 1 where the exponent is 0, 0 of 0 where its real part is positive."""
    nothing = (z[0] == 0) & (z[1] == 0)
    usual = xp.where(nothing, 1.0, z[0]), z[1]
    real, imaginary = exponential(xp, times(xp, logarithm(xp, usual), exponent))
    real, imaginary = (xp.where(nothing, xp.where(exponent[0] > 0, 0.0, xp.nan), each) for each in (real, imaginary))
    one = (exponent[0] == 0) & (exponent[1] == 0)
    return xp.where(one, 1.0, real), xp.where(one, 0.0, imaginary)


OF_ONE: dict[str, Callable[[Backend, Pair], Pair]] = {
    "exp": exponential,
    "exp2": power_of_two,
    "expm1": exponential_less_1,
    "log": logarithm,
    "log2": _logarithm("1 / ln 2"),
    "log10": _logarithm("1 / ln 10"),
    "log1p": logarithm_of_1_more,
    "sqrt": root,
    "rsqrt": inverse_root,
    "sign": direction,
    "sigmoid": logistic,
    "sin": sine,
    "cos": cosine,
    "tan": tangent,
    "asin": arcsine,
    "acos": arccosine,
    "atan": arctangent,
    "sinh": hyperbolic_sine,
    "cosh": hyperbolic_cosine,
    "tanh": hyperbolic_tangent,
    "asinh": hyperbolic_arcsine,
    "acosh": hyperbolic_arccosine,
    "atanh": hyperbolic_arctangent,
}
"""Functions of a complex number with a complex result, by name."""
