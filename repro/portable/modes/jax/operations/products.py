"""Products of matrices, of any axes."""

import math
from collections.abc import Sequence
from typing import Any

from jax import Array, lax
from jax import numpy as jnp

from repro.portable.backends.jax import Backend
from repro.portable.definitions import products
from repro.portable.modes.jax.dispatcher.registry import define, guard
from repro.portable.modes.jax.dispatcher.types import of_one_type
from repro.portable.modes.jax.operations import calls
from repro.portable.numbers.precisions import SLICES


@define("dot_general")
def dot_general(
    lhs: Array, rhs: Array, *, dimension_numbers: Any, precision: Any = None, slices: int, **_: Any
) -> Array:
    a, b, shape = as_matrices(lhs, rhs, dimension_numbers)
    if not lhs.size or not rhs.size:
        return jnp.zeros(shape, a.dtype)
    slices = slices_of(precision, slices)
    (summed_a, summed_b), (batch, _) = dimension_numbers
    last = lhs.ndim - 1 in summed_a, rhs.ndim - 1 in summed_b
    if batch and last == (True, False):
        return of_any_form(a, b, slices).reshape(shape)
    if batch and last == (False, True):
        return of_any_form(b.mT, a.mT, slices).mT.reshape(shape)
    return product(a, b, slices).reshape(shape)


@guard("ragged_dot_general")
def _not_of_groups(avals: list[Any], *, group_offset: Any = None, **_: Any) -> str:
    supported = avals[2].ndim == 1 and group_offset is None
    return "" if supported else "groups by batch, or without the first ones, have no portable form"


@define("ragged_dot_general")
def of_groups(
    lhs: Array,
    rhs: Array,
    sizes: Array,
    *,
    ragged_dot_dimension_numbers: Any,
    precision: Any = None,
    slices: int,
    **_: Any,
) -> Array:
    """Products of groups of rows, each with a matrix of its own; or, where the groups' axis is summed over, one for each."""
    how = ragged_dot_dimension_numbers
    (summed_a, summed_b), (batch_a, batch_b) = how.dot_dimension_numbers
    (ragged,) = how.lhs_ragged_dimensions
    if ragged in batch_a:
        return dot_general(lhs, rhs, dimension_numbers=how.dot_dimension_numbers, precision=precision, slices=slices)
    ends = jnp.cumsum(sizes)
    group = jnp.searchsorted(ends, jnp.arange(lhs.shape[ragged]), side="right")  # one more where there is none

    def each(x: Array, axis: int) -> Array:
        """What each group has along an axis, and zeros: [G, ...]."""
        there = group == jnp.arange(len(sizes))[:, None]
        return jnp.where(there.reshape(-1, *(group.size if at == axis else 1 for at in range(x.ndim))), x, 0)

    def after(axes: Sequence[int]) -> list[int]:
        return [axis + 1 for axis in axes]

    if ragged in summed_a:
        a, b = each(lhs, ragged), each(rhs, summed_b[list(summed_a).index(ragged)])
        numbers = (after(summed_a), after(summed_b)), ([0, *after(batch_a)], [0, *after(batch_b)])
        return dot_general(a, b, dimension_numbers=numbers, precision=precision, slices=slices)
    a = jnp.broadcast_to(lhs, (len(sizes), *lhs.shape))
    numbers = (after(summed_a), summed_b), ([0, *after(batch_a)], [*how.rhs_group_dimensions, *batch_b])
    products = dot_general(a, rhs, dimension_numbers=numbers, precision=precision, slices=slices)
    axis = len(batch_a) + _others(lhs, summed_a, batch_a).index(ragged)
    group = group.reshape([-1 if at == axis else 1 for at in range(products.ndim - 1)])
    chosen = jnp.take_along_axis(products, jnp.minimum(group, len(sizes) - 1)[None], 0)[0]
    return jnp.where(group < len(sizes), chosen, 0)


def as_matrices(lhs: Array, rhs: Array, dimension_numbers: Any) -> tuple[Array, Array, tuple[int, ...]]:
    """[B, M, K] and [B, K, N], whose products are those of a dot_general, and its shape."""
    (summed_a, summed_b), (batch_a, batch_b) = dimension_numbers
    free_a, free_b = _others(lhs, summed_a, batch_a), _others(rhs, summed_b, batch_b)
    batch, rows, columns = _sizes(lhs, batch_a), _sizes(lhs, free_a), _sizes(rhs, free_b)
    terms = math.prod(_sizes(lhs, summed_a))
    a = lhs.transpose(*batch_a, *free_a, *summed_a).reshape(math.prod(batch), math.prod(rows), terms)
    b = rhs.transpose(*batch_b, *summed_b, *free_b).reshape(math.prod(batch), terms, math.prod(columns))
    return a, b, (*batch, *rows, *columns)


def _others(x: Array, *axes: Sequence[int]) -> list[int]:
    taken = {axis for each in axes for axis in each}
    return [axis for axis in range(x.ndim) if axis not in taken]


def _sizes(x: Array, axes: Sequence[int]) -> list[int]:
    return [x.shape[axis] for axis in axes]


def slices_of(precision: Any, slices: int) -> int:
    """The slices of operands: by a primitive's parameter, the highest one of both operands, or by the mode."""
    given = precision if isinstance(precision, (list, tuple)) else (precision,)
    return SLICES["highest"] if lax.Precision.HIGHEST in given else slices


def product(a: Array, b: Array, slices: int) -> Array:
    """[B, M, K] and [B, K, N] -> [B, M, N], float64 where one of both is, otherwise float32: rounded once.

    Each row of the first and each column of the second has a grid of its own.
    """
    a, b = of_one_type(a, b)
    if slices == 1 and calls.multiplies(a, a.shape[1], a.shape[2], b.shape[2]):
        return calls.product(a, b)
    return products.batched(Backend, a, b, slices)


def of_any_form(a: Array, b: Array, slices: int) -> Array:
    """product(), where the first factor may be weights: see repro.portable.definitions.products.by_form."""
    a, b = of_one_type(a, b)
    if slices == 1 and calls.multiplies(a, a.shape[1], a.shape[2], b.shape[2]):
        return calls.product(*calls.of_one_form(a, b))
    return products.by_form(Backend, a, b, slices)
