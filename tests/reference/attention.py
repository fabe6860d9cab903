"""Reference: softmax and attention."""

import math

import numpy as np

from reference.arithmetic import Array, exact_dot, f64, grid, r32, swap
from repro.portable.numbers import tables
from repro.portable.numbers.constants import BITS, EXP_BITS, EXP_SPLIT, POWER_BITS


def exponentials(steps: Array, seen: Array) -> tuple[Array, Array]:
    """exp of each row of steps, in units of 2^-20, over that of the row's largest, in units of 2^-40.

    Returns them, float64, and the sums of the nearest integers, of size 1 on the last axis, each rounded once. What is not seen is 0, and is no largest. A row with NaN has NaN for a sum.
    """
    coarse, fine = tables.exp()
    result = np.zeros(steps.shape)
    for at in np.ndindex(steps.shape[:-1]):
        row = steps[at][seen[at]]
        if row.size:
            below = row.max() - row
            distance = np.where(np.isnan(below), 0, np.minimum(below, 2**27 - 1))
            index = np.rint(distance).astype(np.int64)
            power = coarse[index >> EXP_SPLIT] * fine[index % 2**EXP_SPLIT]  # of 26 bits each: exact
            power = np.where(distance < 2**27 - 1, power, 0) * (1 - (distance - index) / 2**EXP_BITS)
            result[at][seen[at]] = np.where(np.isnan(below), np.nan, power * 2.0**POWER_BITS)
    total = np.empty((*steps.shape[:-1], 1))
    for at in np.ndindex(steps.shape[:-1]):
        row = np.rint(result[at])
        total[at] = np.nan if np.isnan(row).any() else float(sum(map(int, row)))
    return result, total


def softmax(x: Array) -> Array:
    """Of the last axis; the sum divides as its reciprocal."""
    powers, total = exponentials(f64(x) * 2.0**EXP_BITS, np.ones(x.shape, bool))
    return r32(powers * (1.0 / total))


def softmax_gradients(x: Array, gradient: Array):
    y = softmax(x)
    return (r32(f64(y) * (f64(gradient) - f64(r32(exact_dot(gradient, y, (-1,)))))),)


def attention(query: Array, key: Array, value: Array, mask: Array | None, causal: bool, scale: float | None) -> Array:
    """softmax(query key^T scale) value: [..., T, D], [..., S, D], [..., S, E] -> [..., T, E]. A grid for each row.

    The p of the values go into the shares that a query gives to them, which then have a grid for each query.
    """
    (v, r), shares = grid(value, (-1,)), _shares(query, key, mask, causal, scale)
    h, u = grid(_weighted(shares, r), (-1,))
    return r32((h @ v) * (u * 2.0 ** (-2 * BITS)))


def _weighted(x: Array, scales: Array) -> Array:
    """x [..., T, S] times the scales of rows, [..., S, 1], but 0 where x is 0: a value without a share may be NaN."""
    return np.where(x == 0, 0, x * swap(scales))


def _shares(query: Array, key: Array, mask: Array | None, causal: bool, scale: float | None) -> Array:
    """The share that each query gives to each key, float32 [..., T, S]: together 1, or 0 where it sees none.

    A query sees what the mask says, and if causal no key after its own; the last query has the last key for its own.
    """
    (q, p), (k, s) = grid(query, (-1,)), grid(key, (-1,))
    scores = (q @ swap(k)) * (p * swap(s) * 2.0 ** (-2 * BITS))
    seen = np.ones(scores.shape, bool)
    if mask is not None:
        seen &= mask
    if causal:
        rows, columns = np.indices(scores.shape[-2:])
        seen &= columns - scores.shape[-1] <= rows - scores.shape[-2]
    powers, total = exponentials(np.rint(scores * (_scale(query, scale) * 2.0**EXP_BITS)), seen)
    return r32(powers * (1.0 / np.where(total == 0, 1.0, total)))


def _scale(query: Array, scale: float | None) -> float:
    return float(np.float32(1 / math.sqrt(query.shape[-1]) if scale is None else scale))


def attention_gradients(query, key, value, mask, gradient, causal: bool, scale: float | None):
    """Queries, keys and the gradient keep the grids of their rows. Their p go into what they are multiplied by."""
    (q, p), (k, s), (v, r), (g, w) = (grid(x, (-1,)) for x in (query, key, value, gradient))
    shares, unit = _shares(query, key, mask, causal, scale), 2.0 ** (-2 * BITS)
    along = exact_dot(gradient, attention(query, key, value, mask, causal, scale), (-1,))
    grad_shares = (g @ swap(v)) * (w * swap(r) * unit)
    grad_scores = np.where(shares == 0, 0, r32(f64(shares) * (grad_shares - along)))
    h, u = grid(_weighted(grad_scores, s), (-1,))
    grad_query = r32((h @ k) * (u * (unit * _scale(query, scale))))
    h, u = grid(grad_scores * p, (-2,))
    grad_key = r32((swap(h) @ q) * (swap(u) * (unit * _scale(query, scale))))
    h, u = grid(shares * w, (-2,))
    return grad_query, grad_key, r32((swap(h) @ g) * (swap(u) * unit)), None
