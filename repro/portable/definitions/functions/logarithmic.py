"""Logarithms: log, log2, log10, log1p.

x = 2^e m with sqrt(1/2) <= m < sqrt 2, and log m = 2 artanh s with s = f / (2 + f), f = m - 1; near 1 the result keeps
f itself, f - f^2 / 2 + ..., as in K. C. Ng's log of Sun's fdlibm.
"""

from repro.portable.definitions.functions.arithmetic import (
    absolute,
    from_integer,
    plus,
    polynomial,
    power_of_two,
    two_product,
    two_sum,
)
from repro.portable.definitions.functions.exponential import exp, ln2
from repro.portable.definitions.xp import Array, Backend
from repro.portable.numbers import polynomials

ONE = 0x3FF0000000000000
ROOT = 0x3FE6A09E667F3BCC
"""The bits of 1 and of sqrt(1/2)."""
SMALLEST_NORMAL = 2.0**-1022


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
    rest = polynomial(xp, z, polynomials.log(bits))
    if bits == 24:
        return plus(xp, s, plus(xp, z, rest, 2.0), e * polynomials.constant("ln 2")[0])
    high, low = ln2()
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
    return _in_domain(xp, x, plus(xp, _log_of_parts(xp, zero, m - 1.0, bits), polynomials.constant("1 / ln 2")[0], e))


def log10(xp: Backend, x: Array, bits: int = 53) -> Array:
    """log x / ln 10."""
    (inverse,), (high, low) = polynomials.constant("1 / ln 10"), polynomials.constant("log10 2", 42)
    e, m = _split(xp, x, bits)
    rest = plus(xp, _log_of_parts(xp, e * 0.0, m - 1.0, bits), inverse, e * low)
    return _in_domain(xp, x, plus(xp, e, high, rest))


def log1p(xp: Backend, x: Array, bits: int = 53) -> Array:
    """log (1 + x): what the sum's rounding takes away is added to f."""
    total = x + 1.0
    large = x >= 1.0
    taken = xp.where(large, 1.0 - (total - x), x - (total - 1.0))
    e, m = _split(xp, total, bits)
    least = e if bits == 24 else xp.clip(e, -1022.0, 1022.0)  # of the largest numbers nothing is taken that counts
    f = plus(xp, taken, power_of_two(xp, -least), m - 1.0)
    y = _in_domain(xp, total, _log_of_parts(xp, e, f, bits))
    return xp.where(x == 0.0, x, y)


def log_pair(xp: Backend, x: Array) -> tuple[Array, Array]:
    """The logarithm of numbers that are not negative, and what its rounding takes away."""
    e, m = _split(xp, x, 53)
    f = m - 1.0
    below, below_rest = two_sum(xp, f, 2.0)
    s = f / below
    product, lost = two_product(xp, s, below)
    s_rest = plus(xp, s, -below_rest, (f - product) - lost) / below
    z, z_rest = two_product(xp, s, s)
    cube, cube_rest = two_product(xp, s, z)
    cube_rest = plus(xp, s, z_rest, cube_rest)
    share, share_rest = polynomials.constant("2 / 3", 52)
    third, third_rest = two_product(xp, cube, share)
    third_rest = plus(xp, cube, share_rest, plus(xp, cube_rest, share, third_rest))
    rest = plus(xp, cube * z, polynomial(xp, z, polynomials.log_pair()), third_rest)
    rest = rest + plus(xp, z, s_rest * 2.0, s_rest * 2.0)
    high, low = ln2()
    first, lost = two_sum(xp, e * high, s * 2.0)
    first, more_lost = two_sum(xp, first, third)
    y, lost = two_sum(xp, first, plus(xp, e, low, (lost + more_lost) + rest))
    finite = (x > 0.0) & (x < xp.inf)
    return _in_domain(xp, x, y), xp.where(finite, lost, 0.0)


# --- with exp ---------------------------------------------------------------------------------------------------------


def softplus(xp: Backend, x: Array, bits: int = 53) -> Array:
    """log(1 + e^x) = max(x, 0) + log(1 + e^-|x|)."""
    return xp.where(x > 0.0, x, xp.where(x == x, 0.0, x)) + _log1p_of_exp(xp, x, bits)


def log_sigmoid(xp: Backend, x: Array, bits: int = 53) -> Array:
    """-log(1 + e^-x)."""
    return xp.where(x < 0.0, x, xp.where(x == x, 0.0, x)) - _log1p_of_exp(xp, x, bits)


def logaddexp(xp: Backend, x: Array, y: Array, bits: int = 53) -> Array:
    """log(e^x + e^y)."""
    away = xp.where(x == y, 0.0, x - y)
    return xp.where(x > y, x, xp.where(x == x, y, x)) + _log1p_of_exp(xp, away, bits)


def _log1p_of_exp(xp: Backend, x: Array, bits: int) -> Array:
    """log(1 + e^-|x|)."""
    return log1p(xp, exp(xp, -absolute(xp, x), bits), bits)


def logit(xp: Backend, x: Array, bits: int = 53) -> Array:
    """log(x / (1 - x)); from 1/4 on log(1 + (2 x - 1) / (1 - x)). NaN beyond 0 and 1."""
    other = 1.0 - x
    near = log1p(xp, ((x - 0.5) * 2.0) / other, bits)
    return xp.where(x < 0.25, log(xp, x / other, bits), near)


def xlogy(xp: Backend, x: Array, y: Array, bits: int = 53) -> Array:
    """x log y; 0 where x is 0 and y a number."""
    return xp.where((x == 0.0) & (y == y), 0.0, x * log(xp, y, bits))


def xlog1py(xp: Backend, x: Array, y: Array, bits: int = 53) -> Array:
    """x log(1 + y); 0 where x is 0 and y a number."""
    return xp.where((x == 0.0) & (y == y), 0.0, x * log1p(xp, y, bits))
