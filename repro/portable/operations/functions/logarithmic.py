"""Logarithms: log, log2, log10, log1p.

x = 2^e m with sqrt(1/2) <= m < sqrt 2, and log m = 2 artanh s with s = f / (2 + f), f = m - 1; near 1 the result keeps
f itself, f - f^2 / 2 + ..., as in K. C. Ng's log of Sun's fdlibm.
"""

from decimal import Decimal, localcontext
from functools import cache

from repro.portable import coefficients
from repro.portable.operations.functions.arithmetic import from_integer, plus, polynomial, power_of_two
from repro.portable.operations.functions.exponential import LN2, constants
from repro.portable.xp import Array, Backend

TERMS = {24: 5, 53: 8}
"""Of (2 artanh s - 2 s) / s^3: an error of 2^-38 and of 2^-60 of log m."""
ONE = 0x3FF0000000000000
ROOT = 0x3FE6A09E667F3BCC
"""The bits of 1 and of sqrt(1/2)."""
SMALLEST_NORMAL = 2.0**-1022


@cache
def _rest(bits: int) -> tuple[float, ...]:
    """(2 artanh s - 2 s) / s^3 in z = s^2: 2 / 3 + 2 z / 5 + ..."""
    function = coefficients.series(Decimal(2) / 3, lambda n: Decimal(2 * n + 1) / (2 * n + 3))
    return coefficients.interpolated(function, 0.0, 0.02945, TERMS[bits])


def _split(xp: Backend, x: Array, bits: int) -> tuple[Array, Array]:
    """e and m, float64, of positive numbers."""
    small = x < SMALLEST_NORMAL
    pattern = xp.pattern(x if bits == 24 else xp.where(small, x * 2.0**54, x)) + (ONE - ROOT)
    e = from_integer(xp, xp.shift_right(pattern, 52) - 1023)
    m = xp.number((pattern & (2**52 - 1)) + ROOT)
    return e if bits == 24 else xp.where(small, e - 54.0, e), m


def _log_of_parts(xp: Backend, e: Array, f: Array, bits: int) -> Array:
    """log of 2^e (1 + f)."""
    s = f / (f + 2.0)
    z = s * s
    rest = polynomial(xp, z, _rest(bits))
    if bits == 24:
        return plus(xp, s, plus(xp, z, rest, 2.0), e * LN2)
    _, high, low = constants()
    half = f * f * 0.5
    correction = plus(xp, s, plus(xp, z, rest, half), e * low)
    return e * high - ((half - correction) - f)


def _in_domain(xp: Backend, x: Array, y: Array) -> Array:
    """y for 0 < x < infinity, else what the logarithm of x is."""
    y = xp.where(x < xp.inf, y, x)
    return xp.where(x > 0.0, y, xp.where(x == 0.0, -xp.inf, x * xp.nan))


def log(xp: Backend, x: Array, bits: int = 53) -> Array:
    """The natural logarithm: -infinity of 0, NaN below."""
    e, m = _split(xp, x, bits)
    return _in_domain(xp, x, _log_of_parts(xp, e, m - 1.0, bits))


def log2(xp: Backend, x: Array, bits: int = 53) -> Array:
    """e + log m / ln 2: exact for powers of two."""
    e, m = _split(xp, x, bits)
    zero = e * 0.0
    return _in_domain(xp, x, plus(xp, _log_of_parts(xp, zero, m - 1.0, bits), constants()[0], e))


def log10(xp: Backend, x: Array, bits: int = 53) -> Array:
    """log x / ln 10."""
    inverse, high, low = _decimal()
    e, m = _split(xp, x, bits)
    rest = plus(xp, _log_of_parts(xp, e * 0.0, m - 1.0, bits), inverse, e * low)
    return _in_domain(xp, x, plus(xp, e, high, rest))


@cache
def _decimal() -> tuple[float, float, float]:
    """1 / ln 10; log10 2 in two parts, the first of 42 bits."""
    with localcontext() as context:
        context.prec = coefficients.DIGITS
        ln10 = Decimal(10).ln()
        return (float(1 / ln10), *coefficients.parts(Decimal(2).ln() / ln10, 42))  # type: ignore[return-value]


def log1p(xp: Backend, x: Array, bits: int = 53) -> Array:
    """log (1 + x): what the sum's rounding takes away is added to f."""
    total = x + 1.0
    large = x >= 1.0
    taken = xp.where(large, 1.0 - (total - x), x - (total - 1.0))
    e, m = _split(xp, total, bits)
    f = plus(xp, taken, power_of_two(xp, -e), m - 1.0)
    y = _in_domain(xp, total, _log_of_parts(xp, e, f, bits))
    return xp.where(x == 0.0, x, y)
