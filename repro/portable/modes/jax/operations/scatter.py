"""Sums written by index, where several meet: exact, on one grid for all that is added."""

import math
from typing import Any

from jax import Array, lax
from jax import numpy as jnp

from repro.portable.backends.jax import Backend
from repro.portable.definitions import doubles
from repro.portable.definitions.grids import check_length, quantize
from repro.portable.modes.jax.dispatcher.gate import define, guard
from repro.portable.numbers.constants import SUM_BITS


@define("scatter_add")
def scatter_add(operand: Array, indices: Array, updates: Array, **how: Any) -> Array:
    return _plus(operand, indices, updates, how)


@define("scatter_sub")
def scatter_sub(operand: Array, indices: Array, updates: Array, **how: Any) -> Array:
    return _plus(operand, indices, -updates, how)


def _plus(operand: Array, indices: Array, updates: Array, how: dict[str, Any]) -> Array:
    if not updates.size:
        return operand
    options = {name: how[name] for name in ("dimension_numbers", "indices_are_sorted", "unique_indices", "mode")}
    axes, terms = tuple(range(updates.ndim)), math.prod(updates.shape)

    def summed(q: Array) -> Array:
        return lax.scatter_add(jnp.zeros(operand.shape), indices, q.astype(jnp.float64), **options)

    wide = operand.astype(jnp.float64)
    if updates.dtype == jnp.float64:
        bits = doubles.sum_bits(terms)
        parts, unit = doubles.slices(Backend, updates, axes, bits, numbers=2)
        return wide + doubles.joined([summed(part) for part in parts], bits) * unit.reshape(())
    check_length(terms, SUM_BITS)
    q, p = quantize(Backend, updates.astype(jnp.float32), axes, SUM_BITS)
    return wide + summed(q) * (p.reshape(()).astype(jnp.float64) * 2.0**-SUM_BITS)


@guard("scatter_mul")
def _multiplied(_: Any, *, unique_indices: bool, **__: Any) -> str:
    return "" if unique_indices else "products at repeated indices have no order"
