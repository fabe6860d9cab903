"""Error functions: erf, erfc, and the normal distribution's ndtr.

erf x = x P(x^2) near 0. Elsewhere erfc x = exp(-x^2) q P(q) with q = 1 / (1 + x / 4) for x >= 0: exp(x^2) erfc x is
smooth in q up to infinity, as in M. Shepherd and J. Laframboise, Chebyshev Approximation of (1 + 2x) exp(x^2) erfc x
(1981).
"""

from decimal import Decimal, localcontext
from functools import cache

from repro.portable import coefficients
from repro.portable.coefficients import PI
from repro.portable.operations.functions.arithmetic import absolute, plus, polynomial, two_product, with_sign
from repro.portable.operations.functions.exponential import exp
from repro.portable.operations.functions.logarithmic import log, log1p
from repro.portable.xp import Array, Backend

ERF_END = {24: 4.0, 53: 1.0}
ERF_TERMS = {24: 21, 53: 12}
END = {24: 10.5, 53: 28.0}
"""From here on erfc is 0, in float32 and in float64."""
TERMS = {24: 15, 53: 25}


def _erf_over_x(square: Decimal) -> Decimal:
    """2 / sqrt pi (1 - x^2 / (1! 3) + x^4 / (2! 5) - ...)."""
    series = coefficients.series(2 / PI.sqrt(), lambda n: Decimal(1 - 2 * n) / (n * (2 * n + 1)))
    return series(square)


def scaled_erfc(x: Decimal) -> Decimal:
    """exp(x^2) erfc x: from 2 on by the continued fraction 1 / (x + 1/2 / (x + 1 / (x + 3/2 / ...))) / sqrt pi."""
    if x < 2:
        return (x * x).exp() * (1 - x * _erf_over_x(x * x))
    fraction = x
    for n in range(300, 0, -1):
        fraction = x + Decimal(n) / 2 / fraction
    return 1 / (fraction * PI.sqrt())


@cache
def _near(bits: int) -> tuple[float, ...]:
    """erf x / x, in x^2 less half of its largest."""
    half = Decimal(ERF_END[bits]) ** 2 / 2
    return coefficients.interpolated(lambda u: _erf_over_x(u + half), -half, half, ERF_TERMS[bits])


@cache
def _far(bits: int) -> tuple[float, ...]:
    """exp(x^2) erfc(x) / q in q - 5/8."""
    middle, lowest = Decimal(5) / 8, 1 / (1 + Decimal(END[bits]) / 4)

    def function(u: Decimal) -> Decimal:
        q = u + middle
        return scaled_erfc(4 / q - 4) / q

    return coefficients.interpolated(function, lowest - middle, 1 - middle, TERMS[bits])


def _erf_near(xp: Backend, x: Array, bits: int) -> Array:
    return x * polynomial(xp, x * x - ERF_END[bits] ** 2 / 2, _near(bits))


def _scaled_of_positive(xp: Backend, x: Array, bits: int) -> Array:
    """exp(x^2) erfc x, of 0 <= x <= END."""
    q = 1.0 / (x * 0.25 + 1.0)
    return q * polynomial(xp, q - 0.625, _far(bits))


def _erfc_of_positive(xp: Backend, x: Array, bits: int, rest: Array | None = None) -> Array:
    """Of 0 <= x <= END, or of x + rest."""
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
    high, low = _root_of_half()
    if bits == 24:
        return erfc(xp, x * -high, bits) * 0.5
    x = xp.clip(x, -40.0, 40.0)
    y, lost = two_product(xp, x, -high)
    return _erfc(xp, y, bits, plus(xp, x, -low, lost)) * 0.5


def _erfc(xp: Backend, x: Array, bits: int, rest: Array | None) -> Array:
    size = absolute(xp, x)
    if rest is not None:
        rest = xp.where(x < 0.0, -rest, rest)
    y = _erfc_of_positive(xp, xp.clip(size, -1.0, END[bits]), bits, rest)
    y = xp.where(x < 0.0, 2.0 - y, y)
    return y if bits == 24 else xp.where(size < 0.5, 1.0 - _erf_near(xp, xp.clip(x, -1.0, 1.0), bits), y)


def log_ndtr(xp: Backend, x: Array, bits: int = 53) -> Array:
    """log ndtr x, which for x < 0 is log(exp(z^2) erfc(z) / 2) - z^2 with z = -x / sqrt 2.

    Beyond END exp(z^2) erfc z is (1 - 1 / (2 z^2) + 3 / (2 z^2)^2 - ...) / (z sqrt pi).
    """
    z = x * -_root_of_half()[0]
    beyond = z > END[53]
    inverse = 1.0 / xp.where(beyond, z, END[53])
    tail = inverse * polynomial(xp, inverse * inverse * 0.5, TAIL) * ROOT_OF_INVERSE_PI
    scaled = xp.where(beyond, tail, _scaled_of_positive(xp, xp.clip(z, 0.5, END[53]), 53))
    left = log(xp, scaled * 0.5, bits) - z * z
    share = ndtr(xp, xp.where(x < 1.0, x, -x), bits)
    return xp.where(x < -1.0, left, xp.where(x < 1.0, log(xp, share, bits), log1p(xp, -share, bits)))


TAIL = (105.0, -15.0, 3.0, -1.0, 1.0)
ROOT_OF_INVERSE_PI = float((1 / PI).sqrt())


@cache
def _root_of_half() -> tuple[float, ...]:
    """In two parts."""
    with localcontext() as context:
        context.prec = coefficients.DIGITS
        return coefficients.parts((Decimal(1) / 2).sqrt(), 53)
