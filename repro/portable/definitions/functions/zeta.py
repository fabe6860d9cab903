"""Zeta function of Hurwitz, and derivatives of digamma."""

from repro.portable.definitions.functions.arithmetic import plus
from repro.portable.definitions.functions.exponential import exp
from repro.portable.definitions.functions.gamma import digamma, lgamma
from repro.portable.definitions.functions.powers import power
from repro.portable.definitions.xp import Array, Backend

TERMS = 10
"""Terms of the series that are added one by one."""
BERNOULLI = (
    12.0,
    -720.0,
    30240.0,
    -1209600.0,
    47900160.0,
    -1.8924375803183791606e9,
    7.47242496e10,
    -2.950130727918164224e12,
    1.1646782814350067249e14,
    -4.5979787224074726105e15,
    1.8152105401943546773e17,
    -7.1661652561756670113e18,
)
"""(2 n)! / B_2n: M. Abramowitz and I. Stegun, Handbook of Mathematical Functions, 23.1."""


def zeta(xp: Backend, s: Array, q: Array, bits: int = 53, left: bool = True) -> Array:
    """The sum of (q + k)^-s over k >= 0, for s > 1; infinity for s = 1, and where q is 0 or a negative integer.

    Below 0 s must be whole. Other arguments give NaN. Without `left` no q is below 0: quicker, with the same bits.
    """
    y = _zeta(xp, s, q)
    if not left:
        return y
    beyond = (q < 0.0) & (q > -xp.inf) & (s > 1.0) & (xp.floor(s) == s) & (xp.floor(q) != q)
    order, start = xp.where(beyond, s, 2.0), xp.where(beyond, q, 0.25)
    near = start - xp.rint(start)
    parts = _zeta(xp, xp.stack([order] * 3, 0), xp.stack([near, 1.0 - near, 1.0 - start], 0))
    half = order * 0.5
    below = xp.where(xp.floor(half) == half, parts[1] - parts[2], parts[2] - parts[1])
    return xp.where(beyond, parts[0] + below, y)


def _zeta(xp: Backend, s: Array, q: Array) -> Array:
    """zeta by the formula of Euler and Maclaurin, for q >= -1/2."""
    usual = (s > 1.0) & (q < xp.inf)
    order, start = xp.where(usual, s, 2.0), xp.where(usual, q, 1.0)
    last = start + float(TERMS)
    bases = xp.stack([*(start + float(k) for k in range(TERMS)), last, last], 0)
    powers = power(xp, bases, xp.stack([*[-order] * (TERMS + 1), 1.0 - order], 0))
    total = powers[0]
    for k in range(1, TERMS):
        total = total + powers[k]
    rest, integral = powers[TERMS], powers[TERMS + 1]
    total = total + integral / (order - 1.0)
    total = plus(xp, rest, 0.5, total)
    factor = order
    for n, constant in enumerate(BERNOULLI):
        rest = rest / last
        total = total + xp.where(rest == 0.0, 0.0, (factor * rest) / constant)
        factor = (factor * (order + (2.0 * n + 1.0))) * (order + (2.0 * n + 2.0))
        rest = rest / last
    total = xp.where(q <= 0.0, xp.where(xp.floor(q) == q, xp.inf, xp.where(q < -0.5, xp.nan, total)), total)
    total = xp.where(q == xp.inf, 0.0, total)
    return xp.where((s > 1.0) & (q == q), total, xp.where((s == 1.0) & (q == q), xp.inf, xp.nan))


def polygamma(xp: Backend, n: Array, x: Array, bits: int = 53, left: bool = True) -> Array:
    """The derivative of this order of digamma: (-1)^(n + 1) n! zeta(n + 1, x); NaN where n is no natural number."""
    order = xp.where(n < 1.0, 1.0, n)
    half = order * 0.5
    size = exp(xp, lgamma(xp, order + 1.0)) * zeta(xp, order + 1.0, x, left=left)
    y = xp.where(xp.floor(half) == half, -size, size)
    y = xp.where(n == 0.0, digamma(xp, x, bits), y)
    return xp.where((n < 0.0) | (xp.floor(n) != n) | (n != n), xp.nan, y)
