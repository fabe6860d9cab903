"""Polynomials of Bessel functions of orders 0 and 1: J and Y, and K, the modified one.

Values come from integrals over the whole line, of which sums of equal steps have all digits: L. Trefethen and J. Weideman, The
Exponentially Convergent Trapezoidal Rule, SIAM Review 56, 2014.
"""

from collections.abc import Callable
from decimal import Decimal
from functools import cache
from itertools import count

from repro.portable.numbers.coefficients import PI, cosine, interpolated, series
from repro.portable.numbers.polynomials import Coefficients

NEAR, MIDDLE, FAR = 2.0, 5.0, 8.0
"""Up to NEAR by series and a logarithm, from FAR on by amplitudes; polynomials up to MIDDLE and up to FAR between them."""
STEPS = 24
"""Steps of an integral up to the distance of its nearest singularity from the line."""
Pair = tuple[Decimal, Decimal]


def _first(order: int, quarter: Decimal) -> Decimal:
    """J0 x, or J1 x / x, by x^2 / 4."""
    return series(Decimal(1) / (1 + order), lambda n: Decimal(-1) / (n * (n + order)))(quarter)


def _modified(order: int, quarter: Decimal) -> Decimal:
    """I0 x, or I1 x / x."""
    return series(Decimal(1) / (1 + order), lambda n: Decimal(1) / (n * (n + order)))(quarter)


def _amplitudes(order: int, x: Decimal) -> Pair:
    """P and Q with J = sqrt(2 / (pi x)) (P cos c - Q sin c), c = x - (2 order + 1) pi / 4: H. Hankel's integral.

    4^order / sqrt pi times that of exp(-s^2) s^(2 order) (1 + i s^2 / (2 x))^(order - 1/2).
    """
    step = min(Decimal(1) / 16, x.sqrt() / STEPS)
    real, imaginary = (Decimal(not order) / 2, Decimal(0))
    for n in count(1):
        square = (step * n) ** 2
        weight, y = (-square).exp() * square**order, square / (2 * x)
        size = (1 + y * y).sqrt()
        root = ((size + 1) / 2).sqrt()
        a, b = root, y / (2 * root)
        real += weight * (a if order else a / size)
        imaginary += weight * (b if order else -b / size)
        if weight < Decimal(10) ** -58:
            break
    unit = 2 * step * 2**order / PI.sqrt()
    return real * unit, imaginary * unit


def _second(order: int, x: Decimal) -> Decimal:
    """Y."""
    p, q = _amplitudes(order, x)
    phase = x - (2 * order + 1) * PI / 4
    return (2 / (PI * x)).sqrt() * (p * cosine(phase - PI / 2) + q * cosine(phase))


def _scaled_third(order: int, x: Decimal) -> Decimal:
    """exp(x) K(x): the integral of exp(-x (cosh t - 1)) cosh(order t) from 0 on."""
    step, total = min(Decimal(1) / STEPS, 1 / (3 * x.sqrt())), Decimal(1) / 2
    for n in count(1):
        power = (step * n).exp()
        high = (power + 1 / power) / 2
        term = (-x * (high - 1)).exp() * (high if order else 1)
        total += term
        if term < Decimal(10) ** -58:
            return total * step
    raise AssertionError


# --- near 0: of x^2 ---------------------------------------------------------------------------------------------------


def _of_square(function: Callable[[Decimal], Decimal], terms: int) -> Coefficients:
    return interpolated(function, 0.0, NEAR**2, terms)


@cache
def first_near(order: int) -> Coefficients:
    """J0 x, or J1 x / x, in x^2."""
    return _of_square(lambda u: _first(order, u / 4), 12)


@cache
def modified_near(order: int, bits: int) -> Coefficients:
    """I0 x, or I1 x / x, in x^2."""
    return _of_square(lambda u: _modified(order, u / 4), {24: 8, 53: 12}[bits])


@cache
def second_near(order: int) -> Coefficients:
    """Y0 - 2 / pi log(x) J0, or (Y1 - 2 / pi (log(x) J1 - 1 / x)) / x, in x^2."""

    def rest(u: Decimal) -> Decimal:
        x = u.sqrt()
        if not order:
            return _second(0, x) - 2 / PI * x.ln() * _first(0, u / 4)
        return (_second(1, x) + 2 / (PI * x)) / x - 2 / PI * x.ln() * _first(1, u / 4)

    return _of_square(rest, 12)


@cache
def third_near(order: int, bits: int) -> Coefficients:
    """K0 + log(x) I0, or (K1 - log(x) I1 - 1 / x) / x, in x^2."""

    def rest(u: Decimal) -> Decimal:
        x = u.sqrt()
        value = (-x).exp() * _scaled_third(order, x)
        if not order:
            return value + x.ln() * _modified(0, u / 4)
        return (value - 1 / x) / x - x.ln() * _modified(1, u / 4)

    return _of_square(rest, {24: 8, 53: 12}[bits])


# --- beyond -----------------------------------------------------------------------------------------------------------


@cache
def between(kind: str, order: int, begin: float, end: float) -> Coefficients:
    """J or Y in x - (begin + end) / 2, between these."""
    middle, half = Decimal(begin + end) / 2, (end - begin) / 2

    def function(u: Decimal) -> Decimal:
        x = u + middle
        if kind == "Y":
            return _second(order, x)
        return _first(order, x * x / 4) * (x if order else 1)

    return interpolated(function, -half, half, {"J": 20, "Y": 27}[kind])


@cache
def amplitude(order: int, part: int) -> Coefficients:
    """P, or x Q, in 1 / x^2 - 1 / (2 FAR^2), from FAR on."""
    half = 1 / Decimal(FAR) ** 2 / 2

    def function(u: Decimal) -> Decimal:
        x = 1 / (u + half).sqrt()
        return _amplitudes(order, x)[part] * (x if part else 1)

    return interpolated(function, -half, half, 16)


@cache
def third_far(order: int, bits: int) -> Coefficients:
    """sqrt x exp(x) K(x) in 1 / x - 1 / (2 NEAR), from NEAR on."""
    half = 1 / Decimal(NEAR) / 2

    def function(u: Decimal) -> Decimal:
        x = 1 / (u + half)
        return x.sqrt() * _scaled_third(order, x)

    return interpolated(function, -half, half, {24: 16, 53: 28}[bits])
