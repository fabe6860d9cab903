"""Attention, and the softmax that the loss has, too."""

import math

from repro.portable import tables
from repro.portable.constants import BITS, EXP_BITS, EXP_SPLIT, POWER_BITS
from repro.portable.operations.grids import Operation, exact_dot, product, quantize, scaled

LAST = 2.0 ** (2 * EXP_SPLIT) - 1


def powers(X, steps, mask=None):
    """exp of each row of steps, float64 integers in units of 2^-EXP_BITS, over that of its largest.

    Returns integers, in a unit that their sums are exact in, the sums, of size 1 on the last axis, and the bits of the
    unit. NaN gives NaN; what the mask leaves out gives 0.
    """
    if mask is not None:
        steps = X.where(mask, steps, -X.inf)
    bits = min(POWER_BITS, 53 - max(0, int(steps.shape[-1]) - 1).bit_length())
    below = X.maximum_of(steps) - steps
    index = X.integer(X.clip(X.where(below != below, 0.0, below), 0.0, LAST))
    coarse, fine = X.tables(steps, tables.exp)
    found = X.take(coarse, X.shift_right(index, EXP_SPLIT)) * X.take(fine, index & (2**EXP_SPLIT - 1))
    found = X.where(below != below, X.nan, X.rint(found * 2.0**bits))
    if mask is not None:
        found = X.where(mask, found, 0.0)
    return found, X.sum(found, (-1,)), bits


def _softmax_forward(X, x):
    """Of the last axis."""
    shares, total, _ = powers(X, X.rint(X.f64(x) * 2.0**EXP_BITS))
    y = X.r32(shares * (1.0 / total))
    return y, (y,)


def _softmax_backward(X, saved, gradient, needs, shapes):
    (y,) = saved
    along = X.r32(exact_dot(X, gradient, y, (-1,)))
    return (X.r32(X.f64(y) * (X.f64(gradient) - X.f64(along))),)


softmax = Operation(_softmax_forward, _softmax_backward)


def _forward(X, query, key, value, mask, causal: bool, scale: float | None):
    """softmax(query key^T scale) value: [..., T, D], [..., S, D], [..., S, E] -> [..., T, E].

    A grid for each row of the three. mask: bool, of a shape that fits [..., T, S], True where a query sees a key, or
    None. A query that sees nothing gives 0.
    """
    factor = _factor(query, scale)
    (q, p), (k, s), (v, r) = (quantize(X, x, (-1,)) for x in (query, key, value))
    scores = scaled(X, product(X, q, X.transpose(k)), 2 * BITS, p, X.transpose(s))
    seen = mask
    if causal:
        triangle = X.causal(query, query.shape[-2], key.shape[-2])
        seen = triangle if mask is None else mask & triangle
    shares, total, _ = powers(X, X.rint(scores * (factor * 2.0**EXP_BITS)), seen)
    # Some number of a row that is seen at all is 2^bits; a row that sees nothing has the sum 0.
    shares = X.r32(shares * (1.0 / X.where(total == 0, 1.0, total)))
    # Values keep the grids of their rows: their scales go into the shares, with a grid for each query. So no query
    # depends on a value that it does not see.
    h, u = quantize(X, shares * X.transpose(r), (-1,))
    y = X.r32(scaled(X, product(X, h, v), 2 * BITS, u))
    return y, (q, p, k, s, v, r, shares, y)


def _backward(X, saved, gradient, needs, shapes, causal: bool, scale: float | None):
    q, p, k, s, v, r, shares, y = saved
    factor = _factor(q, scale)
    g, w = quantize(X, gradient, (-1,))
    along = exact_dot(X, gradient, y, (-1,))
    of_shares = scaled(X, product(X, g, X.transpose(v)), 2 * BITS, w, X.transpose(r))
    of_scores = X.r32(X.f64(shares) * (of_shares - along))
    unit = 2.0 ** (-2 * BITS) * factor
    h, u = quantize(X, of_scores * X.transpose(s), (-1,))
    of_query = X.r32(product(X, h, k) * (X.f64(u) * unit))
    h, u = quantize(X, of_scores * p, (-2,))
    of_key = X.r32(product(X, X.transpose(h), q) * (X.f64(X.transpose(u)) * unit))
    h, u = quantize(X, shares * w, (-2,))
    of_value = X.r32(scaled(X, product(X, X.transpose(h), g), 2 * BITS, X.transpose(u)))
    return of_query, of_key, of_value, None


attention = Operation(_forward, _backward)


def _factor(query, scale: float | None) -> float:
    return tables.float32(1 / math.sqrt(query.shape[-1]) if scale is None else scale)
