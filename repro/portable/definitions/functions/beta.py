"""The distribution function of the beta distribution by its continued fraction, and the derivative of samples.

I(x; a, b) = x^a (1 - x)^b / (a B(a, b)) 1 / (1 + d1 / (1 + d2 / (1 + ...))): NIST's Digital Library of Mathematical
Functions, 8.17.22, for x up to (a + 1) / (a + b + 2), else of 1 - x with the parameters exchanged. Derivatives are those of the fraction.
"""

from repro.portable.definitions.functions.arithmetic import plus
from repro.portable.definitions.functions.exponential import exp
from repro.portable.definitions.functions.gamma import digamma, lgamma
from repro.portable.definitions.functions.logarithmic import log, log1p
from repro.portable.definitions.xp import Array, Backend

DEPTHS = (100.0, 60), (1e4, 400), (1e6, 4000)
"""Up to which larger parameter how many pairs of terms are taken; no digit is promised beyond."""

STEPS = 4000
"""Pairs of terms of the distribution function at most, which serve parameters up to 1e6."""
LAST, LEAST = 2.0**-52, 2.0**-1000
"""A factor this near to 1 ends a fraction; what a part of it is kept away from 0 by."""


def share(xp: Backend, a: Array, b: Array, x: Array, bits: int = 53) -> Array:
    """The distribution function I(x; a, b), between 0 and 1; its limits at parameters 0 and infinity, NaN where it has none."""
    usual = (a > 0.0) & (b > 0.0) & (a < xp.inf) & (b < xp.inf) & (x > 0.0) & (x < 1.0)
    first, second, point = xp.where(usual, a, 1.0), xp.where(usual, b, 1.0), xp.where(usual, x, 0.5)
    left = point * (first + second + 2.0) <= first + 1.0
    logarithms = log(xp, point), log1p(xp, -point)
    near = xp.where(left, first, second), xp.where(left, second, first), xp.where(left, point, 1.0 - point)
    ratio = lgamma(xp, first + second + 1.0) - lgamma(xp, first + 1.0) - lgamma(xp, second + 1.0)
    power = plus(xp, first, logarithms[0], plus(xp, second, logarithms[1], ratio))
    y = exp(xp, power) * (near[1] / (first + second)) * _forward(xp, *near)
    y = xp.where(left, y, 1.0 - y)
    y = xp.where(y < 0.0, 0.0, xp.where(y > 1.0, 1.0, y))
    return xp.where(usual, y, _at_edges(xp, a, b, x))


def _at_edges(xp: Backend, a: Array, b: Array, x: Array) -> Array:
    """All of the distribution is at 0 where a = 0 or b is infinite, at 1 where b = 0 or a is infinite."""
    at_zero, at_one = (a == 0.0) | (b == xp.inf), (b == 0.0) | (a == xp.inf)
    inside = (a >= 0.0) & (b >= 0.0) & (x >= 0.0) & (x <= 1.0)
    limit = xp.where(at_zero, xp.where(x == 0.0, 0.0, 1.0), xp.where(x == 1.0, 1.0, 0.0))
    return xp.where(inside & ((at_zero ^ at_one) | ((x == x) & ~at_zero & ~at_one)), limit, xp.nan)


def _forward(xp: Backend, a: Array, b: Array, x: Array) -> Array:
    """1 / (1 + d1 / (1 + d2 / ...)), from its start (W. Lentz): each place ends by itself, whatever its neighbors do."""

    def step(state: tuple[Array, ...]) -> tuple[Array, ...]:
        m, above, below, total, rest = state
        n, lower = m + 1.0, a + m * 2.0
        middle = lower + 1.0
        odd = -((a + m) / lower * ((a + b + m) / middle) * x)
        above, below, first = _convergent(xp, odd, above, below)
        even = n / middle * ((b - n) / (middle + 1.0)) * x
        above, below, second = _convergent(xp, even, above, below)
        total = xp.where(rest > 0.0, total / first / second, total)
        ended = (n >= float(STEPS)) | ((second >= 1.0 - LAST) & (second <= 1.0 + LAST))
        return n, above, below, total, xp.where(ended, 0.0, rest)

    def going(state: tuple[Array, ...]) -> Array:
        return xp.maximum_of(xp.reshape(state[-1], (-1,)))[0] > 0.0

    zero = (a + b + x) * 0.0
    return xp.repeat_while(going, step, (zero, zero + 1.0, zero, zero + 1.0, zero + 1.0))[3]


def _convergent(xp: Backend, d: Array, above: Array, below: Array) -> tuple[Array, Array, Array]:
    """The next quotients of numerators and of denominators, and the factor of the fraction that they make."""
    above, below = d / above + 1.0, plus(xp, d, below, 1.0)
    above, below = (xp.where((z < LEAST) & (z > -LEAST), LEAST, z) for z in (above, below))
    below = 1.0 / below
    return above, below, above * below


def slope(xp: Backend, x: Array, a: Array, b: Array, bits: int = 53) -> Array:
    """The derivative of a sample x with respect to a, at the same share, over 1 - x; NaN beyond 0 and 1."""
    usual = (x >= 0.0) & (x <= 1.0) & (a > 0.0) & (b > 0.0) & (a < xp.inf) & (b < xp.inf)
    x, a, b = xp.where(usual, x, 0.5), xp.where(usual, a, 1.0), xp.where(usual, b, 1.0)
    left = x * (a + b + 2.0) <= a + 1.0
    first, second, point = xp.where(left, a, b), xp.where(left, b, a), xp.where(left, x, 1.0 - x)
    larger = xp.where(a > b, a, b)
    total, by_first, by_second = x * 0.0, x * 0.0, x * 0.0
    for place, (most, depth) in enumerate(DEPTHS):
        least = DEPTHS[place - 1][0] if place else 0.0
        inside = (larger > least) & (larger <= most) if place < len(DEPTHS) - 1 else larger > least
        parts = _fraction(
            xp, xp.where(inside, first, 1.0), xp.where(inside, second, 1.0), xp.where(inside, point, 0.0), depth
        )
        total, by_first, by_second = (
            xp.where(inside, new, old) for new, old in zip(parts, (total, by_first, by_second), strict=True)
        )
    change = digamma(xp, a + b) + log(xp, xp.where(x > 0.0, x, 1.0))
    below = -(x / a) * plus(xp, change - digamma(xp, a + 1.0), total, by_first)
    above = x / b * plus(xp, change - digamma(xp, a + 1.0) + 1.0 / a, total, by_second)
    return xp.where(usual, xp.where(x == 0.0, 0.0, xp.where(left, below, above)), xp.nan)


def _fraction(xp: Backend, a: Array, b: Array, x: Array, depth: int) -> tuple[Array, Array, Array]:
    """1 / (1 + d1 / (1 + d2 / ...)), from its end, and its derivatives with respect to a and b."""

    def step(_: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
        """Divide by what follows: d_(2 m + 2), d_(2 m + 1) with m falling."""
        m, rest, by_a, by_b = state
        n = m + 1.0
        middle, sum_of = a + m * 2.0 + 1.0, a + b + m
        even = n * (b - n) * x / (middle * (middle + 1.0))
        even_a = -even * (1.0 / middle + 1.0 / (middle + 1.0))
        even_b = n * x / (middle * (middle + 1.0))
        rest, by_a, by_b = _over(xp, (even, even_a, even_b), (rest, by_a, by_b))
        odd_unit = x / ((middle - 1.0) * middle)
        odd = -((a + m) * sum_of) * odd_unit
        odd_a = plus(xp, -(a + m + sum_of), odd_unit, -odd * (1.0 / (middle - 1.0) + 1.0 / middle))
        odd_b = -(a + m) * odd_unit
        rest, by_a, by_b = _over(xp, (odd, odd_a, odd_b), (rest, by_a, by_b))
        return m - 1.0, rest, by_a, by_b

    zero = (a + b + x) * 0.0
    _, rest, by_a, by_b = xp.repeat(depth, step, (zero + (depth - 1.0), zero, zero, zero))
    total = 1.0 / (rest + 1.0)
    return total, -total * total * by_a, -total * total * by_b


def _over(xp: Backend, above: tuple[Array, Array, Array], rest: tuple[Array, Array, Array]) -> tuple[Array, ...]:
    """d / (1 + rest), and its derivatives."""
    below = rest[0] + 1.0
    value = above[0] / below
    return value, *(plus(xp, -value, more, slope) / below for slope, more in zip(above[1:], rest[1:], strict=True))
