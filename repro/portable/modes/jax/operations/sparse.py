"""Products of sparse matrices, also of several, with dense ones. What else JAX does with sparse arrays it makes of other primitives.

An index outside of the matrix, with which JAX fills arrays up, counts for nothing.
"""

import math
from typing import Any

from jax import Array
from jax import numpy as jnp

from repro.portable.backends.jax import Backend
from repro.portable.definitions import sparse
from repro.portable.modes.jax.dispatcher.registry import define, guard
from repro.portable.modes.jax.dispatcher.types import of_one_type


@guard("bcoo_dot_general", "bcsr_dot_general")
def _not_of_matrices(avals: list[Any], *, dimension_numbers: Any, lhs_spinfo: Any, **_: Any) -> str:
    (summed, _), (batch, _) = dimension_numbers
    outer = avals[0].ndim - 1
    of_matrices = len(lhs_spinfo.shape) == outer + 2 and len(summed) == 1 and summed[0] >= outer
    of_batches = avals[1].ndim == outer + 2 and tuple(batch) in ((), tuple(range(outer)))
    supported = of_matrices and (of_batches or (avals[1].ndim == 1 and not outer and not batch))
    return "" if supported else "products of sparse arrays that are no matrices have no portable form"


@define("bcoo_dot_general")
def product(data: Array, indices: Array, rhs: Array, *, dimension_numbers: Any, lhs_spinfo: Any, **_: Any) -> Array:
    """The products of matrices [..., M, K]: those of one matrix that has all of them on its diagonal."""
    ((summed,), (rhs_summed,)), (batch, rhs_batch) = dimension_numbers
    outer, count = lhs_spinfo.shape[:-2], math.prod(lhs_spinfo.shape[:-2])
    free = 2 * len(outer) + 1 - summed
    terms, height = lhs_spinfo.shape[summed], lhs_spinfo.shape[free]
    dense = jnp.moveaxis(rhs, (*rhs_batch, rhs_summed), range(len(batch) + 1))
    rest = dense.shape[len(batch) + 1 :]
    dense = jnp.broadcast_to(dense, (*outer, terms, *rest)).reshape(count, terms, -1)
    dense = jnp.pad(dense, ((0, 0), (0, 1), (0, 0))).reshape(count * (terms + 1), -1)
    values, dense = of_one_type(jnp.broadcast_to(data, (*outer, data.shape[-1])).reshape(-1), dense)
    places = jnp.broadcast_to(indices, (*outer, *indices.shape[-2:])).reshape(count, -1, 2)
    rows, columns = (
        (jnp.minimum(places[..., axis - len(outer)], size) + jnp.arange(count)[:, None] * (size + 1)).reshape(-1)
        for axis, size in ((free, height), (summed, terms))
    )
    sums = sparse.product(Backend, rows, columns, values, dense, count * (height + 1))
    return sums.reshape(count, height + 1, -1)[:, :-1].reshape(*outer, height, *rest)


@define("bcsr_dot_general")
def product_by_rows(data: Array, indices: Array, ends: Array, rhs: Array, *, lhs_spinfo: Any, **how: Any) -> Array:
    rows = jnp.searchsorted(ends, jnp.arange(len(indices)), side="right") - 1
    return product(data, jnp.stack([rows, indices], 1), rhs, lhs_spinfo=lhs_spinfo, **how)
