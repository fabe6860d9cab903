"""Factors of matrices, and triangular systems, in float64: column by column, by operations of each element."""

from typing import Any

from jax import Array, lax
from jax import numpy as jnp

from repro.portable.modes.jax.dispatcher.gate import define


@define("cholesky")
def cholesky(x: Array, **_: Any) -> Array:
    """[..., N, N] -> L with L L^T = x, of its lower part; NaN where x is not positive definite."""
    size = x.shape[-1]
    places = jnp.arange(size)

    def column(step: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        rest, found = state
        pivot = jnp.sqrt(lax.dynamic_slice_in_dim(_at(rest, step), step, 1, -1))
        line = jnp.where(places >= step, _at(rest, step) / pivot, 0.0)
        rest = rest - line[..., :, None] * line[..., None, :]
        return rest, jnp.where(places == step, line[..., None], found)

    wide = jnp.tril(x.astype(jnp.float64))
    _, found = lax.fori_loop(0, size, column, (wide + jnp.swapaxes(jnp.tril(wide, -1), -1, -2), jnp.zeros(x.shape)))
    failed = jnp.isnan(found).any((-1, -2), keepdims=True)
    return jnp.where(failed & (places[:, None] >= places), jnp.nan, found)


def _at(x: Array, column: Array) -> Array:
    """[..., M, N] -> [..., M]"""
    return lax.dynamic_index_in_dim(x, column, -1, keepdims=False)


@define("triangular_solve")
def triangular_solve(
    a: Array,
    b: Array,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    unit_diagonal: bool,
    **_: Any,
) -> Array:
    """x with a x = b, or x a = b: by substitution."""
    a, b = a.astype(jnp.float64), b.astype(jnp.float64)
    if transpose_a != (not left_side):  # x a = b is a^T x^T = b^T
        a, lower = jnp.swapaxes(a, -1, -2), not lower
    b = b if left_side else jnp.swapaxes(b, -1, -2)
    size = a.shape[-1]
    diagonal = jnp.ones(a.shape[:-1]) if unit_diagonal else jnp.diagonal(a, axis1=-2, axis2=-1)
    places = jnp.arange(size)

    def row(step: Array, rest: Array) -> Array:
        at = step if lower else size - 1 - step
        x = lax.dynamic_slice_in_dim(rest, at, 1, -2) / lax.dynamic_slice_in_dim(diagonal, at, 1, -1)[..., None]
        after = (places > at) if lower else (places < at)
        line = jnp.where(after, _at(a, at), 0.0)
        rest = jnp.where(places[:, None] == at, x, rest)
        return rest - line[..., None] * x

    found = lax.fori_loop(0, size, row, b)
    return found if left_side else jnp.swapaxes(found, -1, -2)


@define("qr")
def qr(x: Array, *, full_matrices: bool, pivoting: bool = False, **_: Any) -> tuple[Array, Array]:
    """[..., M, N] -> Q, R. Householder's reflections, J. ACM 5, 1958, with the signs of LAPACK."""
    if pivoting:
        raise NotImplementedError("portable numerics: qr with pivoting has no portable form; use pivoting=False")
    rows, columns = x.shape[-2:]
    size, steps = (rows if full_matrices else min(rows, columns)), min(rows - 1, columns)
    places = jnp.arange(rows)

    def column(step: Array, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        rest, vectors, factors = state
        v, factor = _reflection(_at(rest, step), places, step)
        rest = _reflected(rest, v, factor)
        rest = jnp.where((places[:, None] > step) & (jnp.arange(columns) == step), 0.0, rest)
        here = jnp.arange(max(steps, 1)) == step
        return rest, jnp.where(here, v[..., None], vectors), jnp.where(here, factor, factors)

    batch = x.shape[:-2]
    state = x.astype(jnp.float64), jnp.zeros((*batch, rows, max(steps, 1))), jnp.zeros((*batch, max(steps, 1)))
    rest, vectors, factors = lax.fori_loop(0, steps, column, state)

    def back(number: Array, q: Array) -> Array:
        step = steps - 1 - number
        return _reflected(q, _at(vectors, step), lax.dynamic_slice_in_dim(factors, step, 1, -1))

    q = lax.fori_loop(0, steps, back, jnp.broadcast_to(jnp.eye(rows, size), (*batch, rows, size)))
    return q, jnp.triu(rest[..., :size, :])


def _reflection(x: Array, places: Array, step: Array) -> tuple[Array, Array]:
    """The vector v and the factor t of I - t v v^T, which takes x [..., K] from a place on to a multiple of that axis."""
    x = jnp.where(places >= step, x, 0.0)
    scale = jnp.abs(x).max(-1, keepdims=True)
    x = x / jnp.where(scale == 0.0, 1.0, scale)
    norm = jnp.sqrt(total((x * x)[..., None]))
    first = lax.dynamic_slice_in_dim(x, step, 1, -1)
    away = first + jnp.where(first < 0.0, -norm, norm)
    below = jnp.where(places > step, x, 0.0)
    v = jnp.where(places == step, 1.0, below / jnp.where(away == 0.0, 1.0, away))
    alone = jnp.abs(below).max(-1, keepdims=True) == 0.0
    return v, jnp.where(alone, 0.0, 2.0 / total((v * v)[..., None]))


def _reflected(x: Array, v: Array, factor: Array) -> Array:
    """[..., K, N]"""
    return x - v[..., None] * (factor * total(v[..., None] * x))[..., None, :]


def total(x: Array) -> Array:
    """The sum over the last axis but one, by halves: float64 sums of one order everywhere."""
    while x.shape[-2] > 1:
        half = (x.shape[-2] + 1) // 2
        upper, lower = x[..., :half, :], x[..., half:, :]
        edges = [(0, 0)] * (x.ndim - 2) + [(0, half - lower.shape[-2]), (0, 0)]
        x = upper + jnp.pad(lower, edges)
    return x[..., 0, :]


@define("lu")
def lu(x: Array, **_: Any) -> tuple[Array, Array, Array]:
    """[..., M, N] -> L and U in one matrix, the rows that were swapped, and the order of rows: with pivots by size."""
    rows, columns = x.shape[-2:]
    batch, steps = x.shape[:-2], min(rows, columns)
    places = jnp.arange(rows)

    def column(step: Array, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        x, pivots, order = state
        most = jnp.argmax(jnp.where(places >= step, jnp.abs(_at(x, step)), -1.0), -1, keepdims=True)
        swapped = jnp.where(places == step, most, jnp.where(places == most, step, places))
        x = jnp.take_along_axis(x, swapped[..., None], -2)
        row, below = lax.dynamic_index_in_dim(x, step, -2), _at(x, step)
        pivot = lax.dynamic_slice_in_dim(below, step, 1, -1)
        factors = jnp.where(places > step, below / jnp.where(pivot == 0.0, 1.0, pivot), 0.0)[..., None]
        after = jnp.arange(columns) > step
        here = (jnp.arange(columns) == step) & (places > step)[:, None]
        x = jnp.where(here, factors, x - factors * jnp.where(after, row, 0.0))
        pivots = jnp.where(jnp.arange(steps) == step, most.astype(jnp.int32), pivots)
        return x, pivots, jnp.take_along_axis(order, swapped, -1)

    order = jnp.broadcast_to(places.astype(jnp.int32), (*batch, rows))
    state = x.astype(jnp.float64), jnp.zeros((*batch, steps), jnp.int32), order
    return lax.fori_loop(0, steps, column, state) if x.size else state
