"""Products of sparse matrices with dense ones. What else JAX does with sparse arrays it makes of other primitives.

An index outside of the matrix, with which JAX fills arrays up, counts for nothing.
"""

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
    of_matrices = avals[0].ndim == 1 and len(lhs_spinfo.shape) == 2 and len(summed) == 1 and not batch
    return "" if of_matrices else "products of sparse arrays that are no matrices have no portable form"


@define("bcoo_dot_general")
def product(data: Array, indices: Array, rhs: Array, *, dimension_numbers: Any, lhs_spinfo: Any, **_: Any) -> Array:
    (((summed,), (rhs_summed,)), _) = dimension_numbers
    terms, height = lhs_spinfo.shape[summed], lhs_spinfo.shape[1 - summed]
    dense = jnp.moveaxis(rhs, rhs_summed, 0)
    values, rest = data, dense.shape[1:]
    values, dense = of_one_type(values, jnp.pad(dense.reshape(terms, -1), ((0, 1), (0, 0))))
    rows, columns = (jnp.minimum(indices[:, each], size) for each, size in ((1 - summed, height), (summed, terms)))
    return sparse.product(Backend, rows, columns, values, dense, height + 1)[:-1].reshape(height, *rest)


@define("bcsr_dot_general")
def product_by_rows(data: Array, indices: Array, ends: Array, rhs: Array, *, lhs_spinfo: Any, **how: Any) -> Array:
    rows = jnp.searchsorted(ends, jnp.arange(len(indices)), side="right") - 1
    return product(data, jnp.stack([rows, indices], 1), rhs, lhs_spinfo=lhs_spinfo, **how)
