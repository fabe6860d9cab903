"""Sums written by index, where several meet: exact, on one grid for all that is added."""

from typing import Any

import jax
from jax import Array, lax
from jax import numpy as jnp

from repro.portable.backends.jax import Backend
from repro.portable.definitions import sums
from repro.portable.definitions.grids import check_length
from repro.portable.modes.jax.dispatcher.registry import define, guard
from repro.portable.modes.jax.dispatcher.types import as_float32
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
    check_length(updates.size, SUM_BITS)
    parts, unit, bits = sums.sliced(Backend, as_float32(updates), tuple(range(updates.ndim)), numbers=2)

    def add(q: Array) -> Array:
        return lax.scatter_add(jnp.zeros(operand.shape), indices, q, **options)

    return operand.astype(jnp.float64) + sums.joined((parts, unit.reshape(()), bits), add)


@guard("scatter_mul")
def _multiplied(_: Any, *, unique_indices: bool, **__: Any) -> str:
    """Where several products meet, XLA takes them in the order of the updates, but only on CPUs."""
    ordered = unique_indices or jax.default_backend() == "cpu"
    return "" if ordered else "products at repeated indices have no order on this device"
