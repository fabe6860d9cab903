"""Attention, and softmax for the loss."""

import math

from repro.portable import tables
from repro.portable.constants import BITS, EXP_BITS, EXP_SPLIT, POWER_BITS
from repro.portable.operations.grids import Operation, exact_dot, product, quantize, scaled
from repro.portable.xp import Backend

LAST = 2.0 ** (2 * EXP_SPLIT) - 1


def powers(xp: Backend, steps, mask=None):
    """exp of each row of steps, float64 integers in units of 2^-EXP_BITS, over that of its largest.

    Returns integers, in a unit that their sums are exact in, the sums, of size 1 on the last axis, and the bits of the
    unit. NaN gives NaN; what the mask leaves out gives 0.
    """
    if mask is not None:
        steps = xp.where(mask, steps, -xp.inf)
    bits = min(POWER_BITS, 53 - max(0, int(steps.shape[-1]) - 1).bit_length())
    below = xp.maximum_of(steps) - steps
    index = xp.integer(xp.clip(xp.where(below != below, 0.0, below), 0.0, LAST))
    coarse, fine = xp.tables(steps, tables.exp)
    found = xp.take(coarse, xp.shift_right(index, EXP_SPLIT)) * xp.take(fine, index & (2**EXP_SPLIT - 1))
    found = xp.where(below != below, xp.nan, xp.rint(found * 2.0**bits))
    if mask is not None:
        found = xp.where(mask, found, 0.0)
    return found, xp.sum(found, (-1,)), bits


def _softmax_forward(xp: Backend, x):
    """Of the last axis."""
    shares, total, _ = powers(xp, xp.rint(xp.f64(x) * 2.0**EXP_BITS))
    y = xp.r32(shares * (1.0 / total))
    return y, (y,)


def _softmax_backward(xp: Backend, saved, gradient, needs, shapes, slices: int = 1):
    (y,) = saved
    along = xp.r32(exact_dot(xp, gradient, y, (-1,), slices=slices))
    return (xp.r32(xp.f64(y) * (xp.f64(gradient) - xp.f64(along))),)


softmax = Operation(_softmax_forward, _softmax_backward)


def _forward(xp: Backend, query, key, value, mask, causal: bool, scale: float | None):
    """softmax(query key^T scale) value: [..., T, D], [..., S, D], [..., S, E] -> [..., T, E].

    A grid for each row of the three. mask: bool, of a shape that fits [..., T, S], True where a query sees a key, or
    None. A query that sees nothing gives 0.
    """
    factor = _factor(query, scale)
    (q, p), (k, s), (v, r) = (quantize(xp, x, (-1,)) for x in (query, key, value))
    scores = scaled(xp, product(xp, q, xp.transpose(k)), 2 * BITS, p, xp.transpose(s))
    seen = mask
    if causal:
        triangle = xp.causal(query, query.shape[-2], key.shape[-2])
        seen = triangle if mask is None else mask & triangle
    shares, total, _ = powers(xp, xp.rint(scores * (factor * 2.0**EXP_BITS)), seen)
    # Some number of a row that is seen at all is 2^bits; a row that sees nothing has the sum 0.
    shares = xp.r32(shares * (1.0 / xp.where(total == 0, 1.0, total)))
    # Values keep the grids of their rows: their scales go into the shares, with a grid for each query. So no query
    # depends on a value that it does not see.
    h, u = quantize(xp, shares * xp.transpose(r), (-1,))
    y = xp.r32(scaled(xp, product(xp, h, v), 2 * BITS, u))
    return y, (q, p, k, s, v, r, shares, y)


def _backward(xp: Backend, saved, gradient, needs, shapes, causal: bool, scale: float | None):
    q, p, k, s, v, r, shares, y = saved
    factor = _factor(q, scale)
    g, w = quantize(xp, gradient, (-1,))
    along = exact_dot(xp, gradient, y, (-1,))
    grad_shares = scaled(xp, product(xp, g, xp.transpose(v)), 2 * BITS, w, xp.transpose(r))
    grad_scores = xp.r32(xp.f64(shares) * (grad_shares - along))
    unit = 2.0 ** (-2 * BITS) * factor
    h, u = quantize(xp, grad_scores * xp.transpose(s), (-1,))
    grad_query = xp.r32(product(xp, h, k) * (xp.f64(u) * unit))
    h, u = quantize(xp, grad_scores * p, (-2,))
    grad_key = xp.r32(product(xp, xp.transpose(h), q) * (xp.f64(xp.transpose(u)) * unit))
    h, u = quantize(xp, shares * w, (-2,))
    grad_value = xp.r32(scaled(xp, product(xp, xp.transpose(h), g), 2 * BITS, xp.transpose(u)))
    return grad_query, grad_key, grad_value, None


attention = Operation(_forward, _backward)


def _factor(query, scale: float | None) -> float:
    return tables.float32(1 / math.sqrt(query.shape[-1]) if scale is None else scale)
