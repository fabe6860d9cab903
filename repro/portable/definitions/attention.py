"""Attention."""

import math
from functools import partial

from repro.portable.definitions.exponentials import powers
from repro.portable.definitions.grids import Operation, exact_dot, product, product_of_slices, scaled, sliced
from repro.portable.definitions.xp import Array, Backend
from repro.portable.numbers import tables
from repro.portable.numbers.constants import BITS, EXP_BITS


def _forward(
    xp: Backend,
    query,
    key,
    value,
    mask,
    bias=None,
    held=None,
    *,
    causal: bool,
    scale: float | None,
    keep: float = 1.0,
    slices: int = 1,
):
    """softmax(query key^T scale + bias) value: [..., T, D], [..., S, D], [..., S, E] -> [..., T, E].

    A grid for each row of the three. What no query sees changes nothing, not even where it is NaN. mask: bool, of a shape that fits [..., T, S], True where a query sees a key, or
    None. A query that sees nothing gives 0. bias: float32 [..., T, S] or None; where it is -infinity, nothing is seen. held: bool [..., T, S], the shares that
    dropout does not make 0, and `keep` their part; or None.
    """
    factor = _factor(query, scale)
    (q, p), (k, s), (v, r) = (_rows(xp, x, slices) for x in (query, key, value))
    scores = scaled(xp, _product(xp, q, _transposed(xp, k)), 2 * BITS, p, xp.transpose(s))
    seen = mask
    if causal:
        triangle = xp.causal(query, query.shape[-2], key.shape[-2])
        seen = triangle if mask is None else mask & triangle
    steps = xp.rint(scores * (factor * 2.0**EXP_BITS))
    if bias is not None:
        steps = steps + xp.rint(xp.f64(bias) * 2.0**EXP_BITS)
        shown = bias != -xp.inf
        seen = shown if seen is None else seen & shown
    power, total = powers(xp, steps, seen)
    # Some number of a row that is seen at all is 2^POWER_BITS; a row that sees nothing has the sum 0.
    shares = xp.r32(power * (1.0 / xp.where(total == 0, 1.0, total)))
    given = _dropped(xp, shares, held, keep)
    # Values keep the grids of their rows: their scales go into the shares, with a grid for each query. So no query
    # depends on a value that it does not see.
    h, u = sliced(xp, _weighted(xp, given, r), (-1,), slices)
    y = xp.r32(scaled(xp, _product(xp, h, v), 2 * BITS, u))
    return y, (*q, p, *k, s, *v, r, shares, y)


def _backward(
    xp: Backend,
    saved,
    gradient,
    needs,
    shapes,
    *,
    causal: bool,
    scale: float | None,
    held=None,
    keep: float = 1.0,
    slices: int = 1,
):
    *parts, shares, y = saved
    (q, p), (k, s), (v, r) = ((parts[i : i + slices], parts[i + slices]) for i in range(0, len(parts), slices + 1))
    g, w = _rows(xp, gradient, slices)
    along = exact_dot(xp, gradient, y, (-1,), slices=slices)
    grad_shares = scaled(xp, _product(xp, g, _transposed(xp, v)), 2 * BITS, w, xp.transpose(r))
    if held is not None:
        grad_shares = xp.f64(_dropped(xp, grad_shares, held, keep))
    grad_scores = xp.where(shares == 0, 0.0, xp.r32(xp.f64(shares) * (grad_shares - along)))
    unit = 2.0 ** (-2 * BITS) * _factor(q[0], scale)
    h, u = sliced(xp, _weighted(xp, grad_scores, s), (-1,), slices)
    grad_query = xp.r32(_product(xp, h, k) * (xp.f64(u) * unit))
    h, u = sliced(xp, grad_scores * p, (-2,), slices)
    grad_key = xp.r32(_product(xp, _transposed(xp, h), q) * (xp.f64(xp.transpose(u)) * unit))
    h, u = sliced(xp, _dropped(xp, shares, held, keep) * w, (-2,), slices)
    grad_value = xp.r32(scaled(xp, _product(xp, _transposed(xp, h), g), 2 * BITS, xp.transpose(u)))
    return (grad_query, grad_key, grad_value, None, grad_scores, None)[: len(shapes)]


attention = Operation(_forward, _backward)


def _product(xp: Backend, a: list[Array], b: list[Array]) -> Array:
    return product_of_slices(partial(product, xp), a, b)


def _rows(xp: Backend, x: Array, slices: int) -> tuple[list[Array], Array]:
    """Slices with a grid for each row; of a row with NaN, whose scale says so, they are 0."""
    parts, p = sliced(xp, x, (-1,), slices)
    return [xp.where(p != p, 0.0, each) for each in parts], p


def _weighted(xp: Backend, x: Array, scales: Array) -> Array:
    """x [..., T, S] with the scales of rows, [..., S, 1]; 0 stays 0, also of a row with NaN."""
    return xp.where(x == 0, 0.0, x * xp.transpose(scales))


def _transposed(xp: Backend, slices: list[Array]) -> list[Array]:
    return [xp.transpose(each) for each in slices]


def _dropped(xp: Backend, x: Array, held: Array | None, keep: float) -> Array:
    return x if held is None else xp.where(held, xp.r32(xp.f64(x) * tables.float32(1.0 / keep)), 0.0)


def _factor(query, scale: float | None) -> float:
    return tables.float32(1 / math.sqrt(query.shape[-1]) if scale is None else scale)
