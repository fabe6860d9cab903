"""Distributions sampled by rejection and by search.

`blocks` are the numbers of elements, int64 [N]. An element has words of its own: a block for each part, which is how often
it was rejected. Parameters and results are float64 [N].
"""

import math
from typing import Any

from repro.portable.definitions.functions import DOUBLE
from repro.portable.definitions.functions.arithmetic import absolute, plus
from repro.portable.definitions.functions.exponential import exp
from repro.portable.definitions.functions.logarithmic import log, log1p
from repro.portable.definitions.functions.trigonometric import cos
from repro.portable.definitions.random import joined, words
from repro.portable.definitions.xp import Array, Backend

FEW = 10.0
"""A mean below which numbers are counted up; above it they are rejected."""
MOST = 64
"""The number that a draw with a mean below FEW reaches only with a probability below 2^-80."""
HALF_LOG_2PI = 0.9189385332046727
STIRLING = 1 / 12, -1 / 360, 1 / 1260, -1 / 1680
SHIFT = 8


def gamma(xp: Backend, blocks: Array, key: Any, part: Any, shape: Array) -> tuple[Array, Array]:
    """A number of the gamma distribution of scale 1, and whether it is accepted.

    G. Marsaglia and W. Tsang, A Simple Method for Generating Gamma Variables, ACM TOMS 26 (2000).
    """
    first, second, third, fourth = (plus(xp, xp.f64(word), 2.0**-32, 2.0**-33) for word in words(xp, blocks, key, part))
    given, shape = shape, xp.where((shape >= 0.0) & (shape < xp.inf), shape, 1.0)
    small = shape < 1.0
    d = xp.where(small, shape + 1.0, shape) - 1.0 / 3.0
    x = xp.sqrt(log(xp, first) * -2.0) * cos(xp, second * (2.0 * math.pi), DOUBLE, large=False)
    base = plus(xp, x, 1.0 / xp.sqrt(d * 9.0), 1.0)
    v = base * base * base
    log_v = log(xp, xp.where(base > 0.0, v, 1.0))
    accepted = (base > 0.0) & (log(xp, third) < plus(xp, x * x, 0.5, d * (1.0 - v + log_v)))
    boost = xp.where(small, exp(xp, log(xp, fourth) / shape), 1.0)
    return xp.where(given == shape, d * v * boost, xp.where(given > 0.0, given, xp.nan)), accepted


def _uniform(xp: Backend, blocks: Array, key: Any, part: Any) -> tuple[Array, Array]:
    """Two numbers inside of (0, 1), of 52 bits."""
    first, second = (share + 2.0**-53 for share in joined(xp, words(xp, blocks, key, part), 52))
    return first, second


def _log_factorial(xp: Backend, n: Array) -> Array:
    """The logarithm of n!, by J. Stirling's series, from n + SHIFT on, where it is exact to 1e-13."""
    x = n + (SHIFT + 1.0)
    product = n + 1.0
    for more in range(2, SHIFT + 1):
        product = product * (n + float(more))
    inverse = 1.0 / x
    square, rest = inverse * inverse, inverse * 0.0
    for coefficient in reversed(STIRLING):
        rest = plus(xp, rest, square, coefficient)
    result = plus(xp, x - 0.5, log(xp, x), plus(xp, rest, inverse, HALF_LOG_2PI) - x)
    return result - log(xp, product)


def few_poisson(xp: Backend, blocks: Array, key: Any, part: Any, mean: Array) -> tuple[Array, Array]:
    """The numbers whose cumulative probability a share exceeds."""
    share, _ = _uniform(xp, blocks, key, part)
    probability = exp(xp, -mean)
    total, number = probability, share * 0.0
    for n in range(1, MOST):
        number = xp.where(share >= total, float(n), number)
        probability = probability * mean * (1.0 / n)
        total = total + probability
    return xp.where(mean == mean, number, xp.nan), share == share


def poisson(xp: Backend, blocks: Array, key: Any, part: Any, mean: Array) -> tuple[Array, Array]:
    """W. Hormann, The transformed rejection method for generating Poisson random variables (1993), PTRS."""
    first, second = _uniform(xp, blocks, key, part)
    given, mean = mean, xp.where(mean < xp.inf, mean, FEW)
    root, u = xp.sqrt(mean), first - 0.5
    b = plus(xp, root, 2.53, 0.931)
    a = plus(xp, b, 0.02483, -0.059)
    inverse_alpha = 1.1239 + 1.1328 * (1.0 / (b - 3.4))
    us = 0.5 - absolute(xp, u)
    k = xp.floor(plus(xp, a * 2.0 / us + b, u, mean + 0.43))
    quick = (us >= 0.07) & (second <= 0.9277 - 3.6224 * (1.0 / (b - 2.0)))
    possible = (k >= 0.0) & ((us >= 0.013) | (second <= us))
    height = log(xp, second * inverse_alpha / (a / (us * us) + b))
    n = xp.where(k >= 0.0, k, 0.0)
    density = plus(xp, n, log(xp, mean), -mean) - _log_factorial(xp, n)
    return xp.where(given == mean, k, given), quick | (possible & (height <= density))


def few_binomial(xp: Backend, blocks: Array, key: Any, part: Any, count: Array, p: Array) -> tuple[Array, Array]:
    """Draw the number of successes in `count` trials with probability p <= 1/2."""
    share, _ = _uniform(xp, blocks, key, part)
    odds = p / (1.0 - p)
    probability = exp(xp, count * log1p(xp, -p))
    total, number = probability, share * 0.0
    for n in range(1, MOST):
        number = xp.where((share >= total) & (count >= float(n)), float(n), number)
        probability = probability * odds * (count - (n - 1.0)) * (1.0 / n)
        total = total + probability
    return xp.where(total == total, number, xp.nan), share == share


def binomial(xp: Backend, blocks: Array, key: Any, part: Any, count: Array, p: Array) -> tuple[Array, Array]:
    """W. Hormann, The generation of binomial random variates (1993), BTRS; p <= 1/2."""
    first, second = _uniform(xp, blocks, key, part)
    given, count = count, xp.where(count < xp.inf, count, 2.0 * FEW)
    u, mean = first - 0.5, count * p
    root = xp.sqrt(mean * (1.0 - p))
    b = plus(xp, root, 2.53, 1.15)
    a = plus(xp, b, 0.0248, -0.0873) + p * 0.01
    us = 0.5 - absolute(xp, u)
    k = xp.floor(plus(xp, a * 2.0 / us + b, u, mean + 0.5))
    quick = (us >= 0.07) & (second <= 0.92 - 4.2 * (1.0 / b))
    possible = (k >= 0.0) & (k <= count)
    alpha = (2.83 + 5.1 * (1.0 / b)) * root
    height = log(xp, second * alpha / (a / (us * us) + b))
    n, mode = xp.where(possible, k, 0.0), xp.floor((count + 1.0) * p)
    most = _log_factorial(xp, mode) + _log_factorial(xp, count - mode)
    density = most - _log_factorial(xp, n) - _log_factorial(xp, count - n)
    density = plus(xp, n - mode, log(xp, p / (1.0 - p)), density)
    return xp.where(given == count, k, given), possible & (quick | (height <= density))
