"""Eigenvalues and singular values, in float64, by rotations of pairs of columns.

C. Jacobi, 1846, in turns of disjoint pairs; singular values as M. Hestenes, J. SIAM 6, 1958. A pair that is orthogonal
already stays as it is, so what has converged no longer changes.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from jax import Array, lax
from jax import numpy as jnp

from repro.portable.backends.jax import Backend
from repro.portable.definitions import linalg
from repro.portable.modes.jax.dispatcher.gate import define, guard
from repro.portable.modes.jax.operations.linalg import qr

total = partial(linalg.total, Backend)

SMALL = 2.0**-53
"""Of the sizes of two columns: their product is 0."""
MOST_SWEEPS = 40

State = tuple[Array, ...]


def _turns(size: int) -> np.ndarray:
    """An even number of columns as pairs, in which each meets each other one once: [turns, 2, pairs]."""
    places, turns = list(range(size)), []
    for _ in range(size - 1):
        half = size // 2
        turns.append([places[:half], places[half:][::-1]])
        places = [places[0], places[-1], *places[1:-1]]
    return np.array(turns)


def _swept(state: State, turn: Callable[[State, Array, Array], tuple[State, Array]], size: int) -> State:
    """The state after the last sweep over all pairs that changes it."""
    turns = jnp.asarray(_turns(size))

    def one(number: Array, found: tuple[State, Array]) -> tuple[State, Array]:
        state, turned = found
        pairs = turns[number]
        order = jnp.argsort(pairs.reshape(-1))
        state, more = turn(state, pairs, order)
        return state, turned | more

    def sweep(found: tuple[State, Array, Array]) -> tuple[State, Array, Array]:
        state, _, count = found
        return *lax.fori_loop(0, size - 1, one, (state, jnp.asarray(False))), count + 1

    begin = state, jnp.asarray(True), jnp.asarray(0)
    return lax.while_loop(lambda found: found[1] & (found[2] < MOST_SWEEPS), sweep, begin)[0]


def _rotation(first: Array, second: Array, product: Array, turned: Array) -> tuple[Array, Array]:
    """Cosine and sine of the angle that makes the product of two columns 0, by the products with themselves."""
    angle = (second - first) / jnp.where(turned, 2.0 * product, 1.0)
    tangent = jnp.where(angle < 0.0, -1.0, 1.0) / (jnp.abs(angle) + jnp.sqrt(angle * angle + 1.0))
    tangent = jnp.where(turned, tangent, 0.0)
    cosine = 1.0 / jnp.sqrt(tangent * tangent + 1.0)
    return cosine, tangent * cosine


def _rotated(x: Array, pairs: Array, order: Array, cosine: Array, sine: Array) -> Array:
    """Pairs of columns, [..., M, N]; the angles [..., pairs]."""
    first, second = jnp.take(x, pairs[0], -1), jnp.take(x, pairs[1], -1)
    cosine, sine = cosine[..., None, :], sine[..., None, :]
    both = jnp.concatenate([cosine * first - sine * second, sine * first + cosine * second], -1)
    return jnp.take(both, order, -1)


def _even(x: Array, axes: tuple[int, ...]) -> Array:
    """With a row or column of zeros where their number is odd, or 0."""
    return jnp.pad(x, [(0, (x.shape[a] % 2) if a - x.ndim in axes else 0) for a in range(x.ndim)])


def _failed(x: Array) -> Array:
    return ~jnp.isfinite(x).all((-1, -2), keepdims=True)


@guard("eigh", "svd")
def _subset(_: Any, *, subset_by_index: Any = None, **__: Any) -> str:
    return "" if subset_by_index is None else "some of the values have no portable form, without all of them"


@define("eigh")
def eigh(x: Array, *, lower: bool, **_: Any) -> tuple[Array, Array]:
    """[..., N, N] -> eigenvectors as columns, eigenvalues from the smallest."""
    size, failed = x.shape[-1], _failed(x)
    x = jnp.where(failed, 0.0, x.astype(jnp.float64))
    part = jnp.tril(x, -1) if lower else jnp.swapaxes(jnp.triu(x, 1), -1, -2)
    x = _even(part + jnp.swapaxes(part, -1, -2) + x * jnp.eye(size), (-1, -2))
    whole = x.shape[-1]
    vectors = jnp.broadcast_to(jnp.eye(whole), x.shape)

    def turn(state: State, pairs: Array, order: Array) -> tuple[State, Array]:
        x, vectors = state
        diagonal = jnp.diagonal(x, axis1=-2, axis2=-1)
        first, second = jnp.take(diagonal, pairs[0], -1), jnp.take(diagonal, pairs[1], -1)
        product = x[..., pairs[0], pairs[1]]
        turned = jnp.abs(product) > SMALL * jnp.sqrt(jnp.abs(first)) * jnp.sqrt(jnp.abs(second))
        turned &= jnp.abs(product) > SMALL * SMALL * jnp.abs(x).max((-1, -2))[..., None]
        cosine, sine = _rotation(first, second, product, turned)
        x = _rotated(x, pairs, order, cosine, sine)
        x = jnp.swapaxes(_rotated(jnp.swapaxes(x, -1, -2), pairs, order, cosine, sine), -1, -2)
        none = jnp.where(turned, 0.0, x[..., pairs[0], pairs[1]])
        x = x.at[..., pairs[0], pairs[1]].set(none).at[..., pairs[1], pairs[0]].set(none)
        return (x, _rotated(vectors, pairs, order, cosine, sine)), turned.any()

    x, vectors = _swept((x, vectors), turn, whole) if size > 1 else (x, vectors)
    values = jnp.diagonal(x, axis1=-2, axis2=-1)[..., :size]
    order = jnp.argsort(values, -1)
    vectors = jnp.take_along_axis(vectors[..., :size, :size], order[..., None, :], -1)
    values = jnp.take_along_axis(values, order, -1)
    return jnp.where(failed, jnp.nan, vectors), jnp.where(failed[..., 0], jnp.nan, values)


@define("svd")
def svd(x: Array, *, full_matrices: bool, compute_uv: bool, **_: Any) -> tuple[Array, ...]:
    """[..., M, N] -> singular values from the largest; and their vectors, columns on the left and rows on the right."""
    if x.shape[-2] < x.shape[-1]:
        values, *both = svd(jnp.swapaxes(x, -1, -2), full_matrices=full_matrices, compute_uv=compute_uv)
        return values, *(jnp.swapaxes(vectors, -1, -2) for vectors in reversed(both))
    size, failed = x.shape[-1], _failed(x)
    x = _even(jnp.where(failed, 0.0, x.astype(jnp.float64)), (-1,))
    whole = x.shape[-1]
    right = jnp.broadcast_to(jnp.eye(whole), (*x.shape[:-2], whole, whole))

    def turn(state: State, pairs: Array, order: Array) -> tuple[State, Array]:
        x, right = state
        first, second = jnp.take(x, pairs[0], -1), jnp.take(x, pairs[1], -1)
        sizes, others, product = total(first * first), total(second * second), total(first * second)
        turned = jnp.abs(product) > SMALL * jnp.sqrt(sizes) * jnp.sqrt(others)
        cosine, sine = _rotation(sizes, others, product, turned)
        return tuple(_rotated(each, pairs, order, cosine, sine) for each in (x, right)), turned.any()

    x, right = _swept((x, right), turn, whole) if size > 1 else (x, right)
    x, right = x[..., :size], right[..., :size, :size]
    values = jnp.sqrt(total(x * x))
    order = jnp.argsort(-values, -1)
    values = jnp.where(failed[..., 0], jnp.nan, jnp.take_along_axis(values, order, -1))
    if not compute_uv:
        return (values,)
    x, right = (jnp.take_along_axis(each, order[..., None, :], -1) for each in (x, right))
    left, triangle = qr(x, full_matrices=full_matrices)
    signs = jnp.where(jnp.diagonal(triangle, axis1=-2, axis2=-1) < 0.0, -1.0, 1.0)
    left = left.at[..., :size].multiply(signs[..., None, :], unique_indices=True)
    right = jnp.swapaxes(right, -1, -2)
    return values, jnp.where(failed, jnp.nan, left), jnp.where(failed, jnp.nan, right)
