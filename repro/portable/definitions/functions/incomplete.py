"""Incomplete gamma functions, and their derivatives with respect to the parameter.

Where x is near a, and both are large, by N. Temme's expansion (NIST's Digital Library of Mathematical Functions, 8.12);
left of it by the series (8.11.4), right of it by the continued fraction (8.9.2), both with all terms that can count.
Of a small parameter the upper function has a series of its own. A derivative is that of the same expansion.
"""

from typing import NamedTuple

from repro.portable.definitions.functions.arithmetic import plus, polynomial
from repro.portable.definitions.functions.errors import erfc
from repro.portable.definitions.functions.exponential import exp, expm1
from repro.portable.definitions.functions.gamma import digamma, lgamma
from repro.portable.definitions.functions.logarithmic import log, log1p
from repro.portable.definitions.xp import Array, Backend
from repro.portable.numbers import polynomials, temme

LARGE, NEAR = 20.0, 0.3
"""Temme's expansion serves parameters from LARGE on, and |x - a| <= NEAR a."""
HUGE = 2.0**900
"""Of parameters from here on the density is 0 wherever x is not near, and terms of the fraction would overflow."""
SMALL = 0.5
"""The upper function of a parameter up to here, and of x up to 1, has a series of its own."""
TINY = 2.0**-1000
"""An x below, of which a / x may be infinite, counts for nothing beside a + 1."""
TERMS, FEW = 120, 24
"""Terms of series and fractions, and of the series for small parameters."""


class _Parts(NamedTuple):
    """What the functions are made of; numbers of other regions are replaced by harmless ones."""

    near: Array
    left: Array
    density: Array
    """x^a exp(-x) / gamma(a + 1)."""
    series: Array
    fraction: Array
    upper: Array
    """Temme's upper function, and his lower one."""
    lower: Array
    slope: Array
    """The derivative of the upper function with respect to a, over x^(a - 1) exp(-x) / gamma(a)."""
    first: Array
    """log x - digamma(a + 1), the derivative of the lower function over the density where x is next to 0."""


def _parts(xp: Backend, a: Array, x: Array) -> _Parts:
    away, is_large = x - a, a >= LARGE
    near = is_large & (away <= a * NEAR) & (away >= a * -NEAR)
    left = (x <= a) | (x <= 1.0)
    unused = near | (a >= HUGE)
    start, point = xp.where(unused, 1.0, a), xp.where(unused, 1.0, x)
    series, series_slope = _series(xp, start, xp.where(left, point, 0.0))
    fraction, fraction_slope = _fraction(xp, xp.where(left, 1.0, start), xp.where(left, 1.0, point))
    large, modest = xp.where(is_large, a, LARGE), xp.where(is_large, 1.0, a)
    mu, height = _height(xp, large, xp.where(is_large, x, LARGE), near)
    inverse = 1.0 / large
    scale = exp(xp, inverse * polynomial(xp, inverse * inverse, polynomials.stirling(53)))
    bell = exp(xp, -(large * height)) / xp.sqrt(large * (2.0 * polynomials.constant("pi")[0]))
    logarithm = log(xp, x)
    power = exp(xp, plus(xp, modest, logarithm, -lgamma(xp, modest + 1.0)) - xp.where(is_large, 1.0, x))
    upper, lower, middle_slope = _middle(
        xp, xp.where(near, a, LARGE), xp.where(near, mu, 0.0), xp.where(near, height, 0.0), bell
    )
    psi = digamma(xp, a + 1.0)
    series_slope = -(x / a) * plus(xp, logarithm - psi, series, series_slope)
    fraction_slope = x * plus(xp, logarithm - psi + 1.0 / a, fraction, fraction_slope)
    slope = xp.where(left, series_slope, fraction_slope)
    slope = xp.where(near, scale * (x / large) * middle_slope, slope)
    density = xp.where(is_large, bell / scale, power)
    return _Parts(near, left, density, series, fraction, upper, lower, slope, logarithm - psi)


def _series(xp: Backend, a: Array, x: Array) -> tuple[Array, Array]:
    """1 + x / (a + 1) (1 + x / (a + 2) (1 + ...)), from its end, and its derivative with respect to a."""

    def step(_: Array, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        n, total, slope = state
        below = a + n
        ratio = x / below
        return n - 1.0, plus(xp, ratio, total, 1.0), ratio * (slope - total / below)

    zero = (a + x) * 0.0
    _, total, slope = xp.repeat(TERMS, step, (zero + float(TERMS), zero + 1.0, zero))
    return total, slope


def _fraction(xp: Backend, a: Array, x: Array) -> tuple[Array, Array]:
    """1 / (x + 1 - a - (1 - a) / (x + 3 - a - 2 (2 - a) / ...)), from its end, and its derivative with respect to a."""

    def step(_: Array, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        n, rest, slope = state
        above, below = n * (n - a), (x - a) + (n * 2.0 + 1.0) - rest
        rest = above / below
        return n - 1.0, rest, plus(xp, rest, slope + 1.0, -n) / below

    zero = (a + x) * 0.0
    _, rest, slope = xp.repeat(TERMS, step, (zero + float(TERMS), zero, zero))
    total = 1.0 / ((x - a) + 1.0 - rest)
    return total, total * total * (slope + 1.0)


def _height(xp: Backend, a: Array, x: Array, near: Array) -> tuple[Array, Array]:
    """mu = x / a - 1, and mu - log(1 + mu), where it is small by s = mu / (2 + mu) as s (mu - 2 s^2 / 3 - 2 s^4 / 5 - ...)."""
    mu = (x - a) / a
    some = xp.where(near, mu, 0.0)
    s = some / (some + 2.0)
    square = s * s
    rest = polynomial(xp, square, [2.0 / (2 * k + 1) for k in range(13, 0, -1)])
    small = s * plus(xp, square, -rest, some)
    far = xp.where(near | (x <= 0.0), 1.0, x / a)
    return mu, xp.where(near, small, xp.where(x <= 0.0, xp.inf, mu - log(xp, far)))


def _middle(xp: Backend, a: Array, mu: Array, height: Array, bell: Array) -> tuple[Array, Array, Array]:
    """Temme's upper and lower functions, and the slope but for scale and x / a."""
    root = xp.sqrt(height * 2.0)
    eta = xp.where(mu < 0.0, -root, root)
    inverse = 1.0 / a
    total = by_inverse = by_eta = a * 0.0
    for coefficients in reversed(temme.orders()):
        value, slope = a * 0.0, a * 0.0
        for each in coefficients:
            slope = plus(xp, slope, eta, value)
            value = plus(xp, value, eta, each)
        by_inverse = plus(xp, by_inverse, inverse, total)
        total, by_eta = plus(xp, total, inverse, value), plus(xp, by_eta, inverse, slope)
    tail = erfc(xp, root * xp.sqrt(a * 0.5)) * 0.5
    upper = plus(xp, bell, total, xp.where(mu < 0.0, 1.0 - tail, tail))
    lower = plus(xp, -bell, total, xp.where(mu < 0.0, tail, 1.0 - tail))
    ratio = polynomial(xp, eta, temme.deviations())  # mu / eta
    slope = plus(xp, eta, -0.5, ratio) - inverse * inverse * by_inverse - by_eta * ratio * inverse
    return upper, lower, plus(xp, total, log1p(xp, mu) - inverse * 0.5, slope)


def _upper_of_small(xp: Backend, a: Array, x: Array) -> Array:
    """1 - x^a / gamma(a + 1) (1 + a (-x / (a + 1) + x^2 / (2 (a + 2)) - ...)), for a <= SMALL and x <= 1, without a difference."""
    logarithm_of_gamma = plus(xp, a, polynomial(xp, a, polynomials.lgamma(53)), -log1p(xp, a))
    size = plus(xp, a, log(xp, x), -logarithm_of_gamma)
    term, total = x * 0.0 + 1.0, x * 0.0
    for n in range(1, FEW):
        term = term * x * (-1.0 / n)
        total = total + term / (a + float(n))
    return -(expm1(xp, size) + exp(xp, size) * a * total)


def _usual(xp: Backend, a: Array, x: Array) -> tuple[Array, Array, Array]:
    """Where parameters are usual; and harmless ones elsewhere."""
    usual = (a > 0.0) & (x > 0.0) & (a < xp.inf) & (x < xp.inf)
    return usual, xp.where(usual, a, 1.0), xp.where(usual, x, 1.0)


def igamma(xp: Backend, a: Array, x: Array, bits: int = 53) -> Array:
    """The share of gamma(a) that its integral has up to x: 0 at 0, also of an infinite parameter; 1 of a = 0."""
    usual, some, point = _usual(xp, a, x)
    parts = _parts(xp, some, point)
    right = 1.0 - parts.density * some * parts.fraction
    y = xp.where(parts.near, parts.lower, xp.where(parts.left, parts.density * parts.series, right))
    edge = xp.where((x == 0.0) | (a == xp.inf), 0.0, xp.where(x == x, 1.0, x))
    return xp.where(usual, y, _of_domain(xp, a, x, edge))


def igammac(xp: Backend, a: Array, x: Array, bits: int = 53) -> Array:
    """1 - igamma, with its own digits where that is small."""
    usual, some, point = _usual(xp, a, x)
    parts = _parts(xp, some, point)
    small = (some <= SMALL) & (point <= 1.0)
    series = _upper_of_small(xp, xp.where(small, some, SMALL), xp.where(small, point, 1.0))
    left = xp.where(small, series, 1.0 - parts.density * parts.series)
    right = parts.density * some * parts.fraction
    y = xp.where(parts.near, parts.upper, xp.where(parts.left, left, right))
    edge = xp.where((x == 0.0) | (a == xp.inf), 1.0, xp.where(x == x, 0.0, x))
    return xp.where(usual, y, _of_domain(xp, a, x, edge))


def _of_domain(xp: Backend, a: Array, x: Array, edge: Array) -> Array:
    """NaN of negative and of two infinite numbers, and of two zeros."""
    known = (a >= 0.0) & (x >= 0.0) & ((a > 0.0) | (x > 0.0)) & ((a < xp.inf) | (x < xp.inf))
    return xp.where(known, edge, xp.nan)


def igamma_slope(xp: Backend, a: Array, x: Array, bits: int = 53) -> Array:
    """The derivative of igamma with respect to a: 0 where one of them is infinite."""
    usual, some, point = _usual(xp, a, x)
    parts = _parts(xp, some, point)
    y = -(parts.density * some / point * parts.slope)
    y = xp.where(point < TINY, parts.density * parts.first, y)
    edge = (a > 0.0) & ((x == 0.0) | (a < xp.inf) & (x == xp.inf) | (a == xp.inf) & (x > 0.0) & (x < xp.inf))
    return xp.where(usual, y, xp.where(edge, 0.0, xp.nan))


def gamma_slope(xp: Backend, a: Array, x: Array, bits: int = 53) -> Array:
    """The derivative of a sample x of the gamma distribution with respect to its parameter, at the same share."""
    usual, some, point = _usual(xp, a, x)
    return xp.where(usual, _parts(xp, some, point).slope, xp.where((x == 0.0) & (a > 0.0), 0.0, xp.nan))
