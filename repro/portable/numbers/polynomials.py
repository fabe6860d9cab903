"""Polynomials and constants of functions, by decimal arithmetic.

They are near their function on an interval: coefficients are float64, the last one first. `bits` is 24 or 53, for a
result that will be rounded to float32, or is float64.
"""

from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import count
from math import comb

from repro.portable.numbers.coefficients import DIGITS, PI, interpolated, parts, series

Coefficients = tuple[float, ...]


@cache
def constant(name: str, *bits: int) -> Coefficients:
    """A number in parts: each but the last is cut to this many bits."""
    with localcontext() as context:
        context.prec = DIGITS
        two, ten = Decimal(2), Decimal(10)
        coefficients = {
            "1 / 3": 1 / Decimal(3),
            "2 / 3": two / 3,
            "pi": PI,
            "1 / pi": 1 / PI,
            "ln 2": two.ln(),
            "1 / ln 2": 1 / two.ln(),
            "1 / ln 10": 1 / ten.ln(),
            "log10 2": two.ln() / ten.ln(),
            "ln pi": PI.ln(),
            "ln (2 pi) / 2": (2 * PI).ln() / 2,
            "sqrt 2": two.sqrt(),
            "sqrt 1/2": 1 / two.sqrt(),
            "sqrt pi / 2": PI.sqrt() / 2,
            "1 / sqrt pi": 1 / PI.sqrt(),
            "1 / sqrt (2 pi)": 1 / (2 * PI).sqrt(),
            "2 sqrt (2 / pi)": (8 / PI).sqrt(),
            "root of digamma": _root_of_digamma(),
        }
        return parts(coefficients[name], *bits)


# --- elementary functions ---------------------------------------------------------------------------------------------


@cache
def exp(bits: int) -> Coefficients:
    """(exp r - 1 - r) / r^2 = 1 / 2! + r / 3! + ... for |r| <= ln 2 / 2: 2^-38 and 2^-60 of exp r."""
    rest = series(Decimal(1) / 2, lambda n: Decimal(1) / (n + 2))
    return interpolated(rest, -0.347, 0.347, {24: 7, 53: 11}[bits])


@cache
def log(bits: int) -> Coefficients:
    """(2 artanh s - 2 s) / s^3 = 2 / 3 + 2 z / 5 + ... in z = s^2, for |s| <= (sqrt 2 - 1) / (sqrt 2 + 1)."""
    rest = series(Decimal(2) / 3, lambda n: Decimal(2 * n + 1) / (2 * n + 3))
    return interpolated(rest, 0.0, 0.02945, {24: 5, 53: 8}[bits])


@cache
def log_pair() -> Coefficients:
    """(2 artanh s - 2 s - 2 s^3 / 3) / s^5 = 2 / 5 + 2 z / 7 + ... in z."""
    rest = series(Decimal(2) / 5, lambda n: Decimal(2 * n + 3) / (2 * n + 5))
    return interpolated(rest, 0.0, 0.02945, 8)


@cache
def sine(bits: int) -> Coefficients:
    """(sin r - r) / r^3 = -1 / 3! + r^2 / 5! - ... in r^2, for |r| <= pi / 2."""
    rest = series(Decimal(-1) / 6, lambda n: Decimal(-1) / ((2 * n + 2) * (2 * n + 3)))
    return interpolated(rest, 0.0, 2.4675, {24: 6, 53: 8}[bits])


@cache
def hyperbolic_sine(bits: int) -> Coefficients:
    """(sinh x - x) / x^3 = 1 / 3! + x^2 / 5! + ... in x^2, for |x| <= 1."""
    rest = series(Decimal(1) / 6, lambda n: Decimal(1) / ((2 * n + 2) * (2 * n + 3)))
    return interpolated(rest, 0.0, 1.0, {24: 5, 53: 8}[bits])


@cache
def arctangent(bits: int) -> Coefficients:
    """(atan t - t) / t^3 = -1 / 3 + t^2 / 5 - ... in t^2, for |t| <= tan(pi / 8)."""
    rest = series(Decimal(-1) / 3, lambda n: Decimal(-2 * n - 1) / (2 * n + 3))
    return interpolated(rest, 0.0, 0.1717, {24: 7, 53: 12}[bits])


# --- error functions --------------------------------------------------------------------------------------------------

ERF_END = {24: 4.0, 53: 1.0}
ERFC_END = {24: 10.5, 53: 28.0}
"""The argument from which on erfc is 0, in float32 and in float64."""
ERFC_MIDDLE = 0.625
NDTR_END = 14.5
"""The argument below whose negative ndtr is 0 in float32."""


def _erf(square: Decimal) -> Decimal:
    """erf x / x = 2 / sqrt pi (1 - x^2 / (1! 3) + x^4 / (2! 5) - ...)."""
    return series(2 / PI.sqrt(), lambda n: Decimal(1 - 2 * n) / (n * (2 * n + 1)))(square)


def _scaled_erfc(x: Decimal) -> Decimal:
    """exp(x^2) erfc x: from 2 on by the continued fraction 1 / (x + 1/2 / (x + 1 / (x + 3/2 / ...))) / sqrt pi."""
    if x < 2:
        return (x * x).exp() * (1 - x * _erf(x * x))
    fraction = x
    for n in range(300, 0, -1):
        fraction = x + Decimal(n) / 2 / fraction
    return 1 / (fraction * PI.sqrt())


@cache
def erf(bits: int) -> Coefficients:
    """erf x / x in x^2 - ERF_END^2 / 2, for |x| <= ERF_END."""
    half = Decimal(ERF_END[bits]) ** 2 / 2
    return interpolated(lambda u: _erf(u + half), -half, half, {24: 21, 53: 12}[bits])


@cache
def scaled_erfc(bits: int) -> Coefficients:
    """exp(x^2) erfc(x) / q in q - ERFC_MIDDLE with q = 1 / (1 + x / 4), for 0 <= x <= ERFC_END."""
    middle, lowest = Decimal(ERFC_MIDDLE), 1 / (1 + Decimal(ERFC_END[bits]) / 4)

    def function(u: Decimal) -> Decimal:
        q = u + middle
        return _scaled_erfc(4 / q - 4) / q

    return interpolated(function, lowest - middle, 1 - middle, {24: 15, 53: 25}[bits])


SCALED_ERFC_TAIL = (105.0, -15.0, 3.0, -1.0, 1.0)
"""exp(x^2) erfc(x) x sqrt pi = 1 - 1 / (2 x^2) + 3 / (2 x^2)^2 - ..., for x >= ERFC_END of float64."""

ERFINV_SPLIT = 5.0
ERFINV_ENDS = 2.2, 11.0, 28.0
"""Ends of the intervals of sqrt w: one polynomial up to the second, another beyond, where float32 has no number."""


def erfinv_middle(part: int) -> float:
    """The middle of an interval of 1 / sqrt w."""
    return (1 / ERFINV_ENDS[part] + 1 / ERFINV_ENDS[part + 1]) / 2


def _erfinv(w: Decimal) -> tuple[Decimal, Decimal]:
    """x with 1 - x^2 = exp(-w), and erfinv x, by Newton's method for log erfc."""
    power = (-w).exp()
    x = (1 - power).sqrt()
    aim = (power / (1 + x)).ln()
    y = x if w < 2 else w.sqrt() - w.sqrt().ln() / w.sqrt()
    for _ in range(60):
        scaled = _scaled_erfc(y)
        step = (scaled.ln() - y * y - aim) * scaled * PI.sqrt() / 2
        y += step
        if abs(step) < Decimal(10) ** -25:
            break
    return x, y


@cache
def erfinv_near() -> Coefficients:
    """erfinv x / x in w - ERFINV_SPLIT / 2, for 0 <= w <= ERFINV_SPLIT."""
    half = Decimal(ERFINV_SPLIT) / 2

    def function(u: Decimal) -> Decimal:
        x, y = _erfinv(u + half)
        return y / x

    return interpolated(function, -half, half, 13)


@cache
def erfinv_far(part: int) -> Coefficients:
    """erfinv x / sqrt w in 1 / sqrt w - erfinv_middle."""
    middle = Decimal(erfinv_middle(part))

    def function(u: Decimal) -> Decimal:
        return _erfinv((u + middle) ** -2)[1] * (u + middle)

    half = Decimal(1 / ERFINV_ENDS[part]) - middle
    return interpolated(function, -half, half, (16, 14)[part])


# --- gamma function ---------------------------------------------------------------------------------------------------

SHIFTED = 8.5
"""The argument from which on Stirling's series is used."""
FAR = 40
"""The argument from which Stirling's series has more than 60 digits."""


@cache
def _bernoulli(terms: int) -> list[Fraction]:
    """B_2, B_4, ..."""
    numbers: list[Fraction] = []
    for n in range(2 * terms + 1):
        numbers.append(Fraction(n == 0) - sum(Fraction(comb(n, k), n - k + 1) * numbers[k] for k in range(n)))
    return numbers[2::2]


def stirling_series(terms: int) -> list[Fraction]:
    """The coefficients of 1 / x, 1 / x^3, ... in Stirling's series of lgamma."""
    return [b / (2 * k * (2 * k - 1)) for k, b in enumerate(_bernoulli(terms), 1)]


def _stirling_derived(terms: int) -> list[Fraction]:
    return [b / (2 * k) for k, b in enumerate(_bernoulli(terms), 1)]


def floats(coefficients: Sequence[Fraction]) -> Coefficients:
    """Coefficients as float64, the last one first."""
    return tuple(float(each) for each in reversed(coefficients))


@cache
def stirling(bits: int) -> Coefficients:
    """x (lgamma x - (x - 1/2) log x + x - log(2 pi) / 2) in 1 / x^2."""
    return floats(stirling_series({24: 5, 53: 11}[bits]))


@cache
def stirling_derived(bits: int) -> Coefficients:
    """x^2 (log x - 1 / (2 x) - digamma x) in 1 / x^2."""
    return floats(_stirling_derived({24: 5, 53: 11}[bits]))


def _sum(coefficients: Sequence[Fraction], x: Decimal) -> Decimal:
    total = Decimal(0)
    for each in reversed(coefficients):
        total = total * x + Decimal(each.numerator) / each.denominator
    return total


def _lgamma(x: Decimal) -> Decimal:
    product = Decimal(1)
    for n in range(FAR):
        product *= x + n
    x += FAR
    rest = _sum(stirling_series(FAR), 1 / (x * x)) / x
    return (x - Decimal("0.5")) * x.ln() - x + (2 * PI).ln() / 2 + rest - product.ln()


def _digamma(x: Decimal) -> Decimal:
    total = -sum(1 / (x + n) for n in range(FAR))
    x += FAR
    return total + x.ln() - 1 / (2 * x) - _sum(_stirling_derived(FAR), 1 / (x * x)) / (x * x)


@cache
def _root_of_digamma() -> Decimal:
    """The root of digamma, by Newton's method with differences."""
    with localcontext() as context:
        context.prec = DIGITS
        x, step = Decimal("1.46"), Decimal(10) ** -25
        for _ in range(8):
            x -= _digamma(x) * step / (_digamma(x + step) - _digamma(x))
        return x


@cache
def lgamma(bits: int) -> Coefficients:
    """lgamma(2 + u) / u, for |u| <= 1/2."""
    return interpolated(lambda u: _lgamma(2 + u) / u, -0.5, 0.5, {24: 14, 53: 20}[bits])


@cache
def digamma(bits: int) -> Coefficients:
    """digamma x / (x - its root) in x - 3/2, for 1 <= x <= 2."""
    middle, root = Decimal("1.5"), _root_of_digamma()
    return interpolated(lambda u: _digamma(u + middle) / (u + middle - root), -0.5, 0.5, {24: 16, 53: 24}[bits])


# --- Bessel functions -------------------------------------------------------------------------------------------------

BESSEL_SPLIT = 8.0
ASYMPTOTIC = 70
"""The argument from which on the series in 1 / x has 60 digits."""


def _bessel(order: int, quarter: Decimal) -> Decimal:
    """I0 x, or I1 x / x, by x^2 / 4."""
    first = Decimal(1) / (1 + order)
    return series(first, lambda n: Decimal(1) / (n * (n + order)))(quarter)


def _scaled_bessel(order: int, inverse: Decimal) -> Decimal:
    """sqrt x exp(-x) I(x)."""
    x = 1 / inverse
    if x < ASYMPTOTIC:
        return x.sqrt() * (-x).exp() * _bessel(order, x * x / 4) * (x if order else 1)
    total = term = Decimal(1)
    for n in count(1):
        following = -term * (4 * order - (2 * n - 1) ** 2) * inverse / (8 * n)
        if abs(following) >= abs(term) or total + following == total:
            break
        term = following
        total += term
    return total / (2 * PI).sqrt()


@cache
def bessel_near(order: int, bits: int) -> Coefficients:
    """I0 x, or I1 x / x, in x^2 / 4, for |x| <= BESSEL_SPLIT."""
    return interpolated(lambda u: _bessel(order, u), 0.0, BESSEL_SPLIT**2 / 4, {24: 14, 53: 22}[bits])


@cache
def bessel_far(order: int, bits: int) -> Coefficients:
    """sqrt x exp(-x) I(x) in 1 / x - 1 / (2 BESSEL_SPLIT), from there on."""
    half = Decimal(1 / BESSEL_SPLIT) / 2
    return interpolated(lambda u: _scaled_bessel(order, u + half), -half, half, {24: 10, 53: 24}[bits])
