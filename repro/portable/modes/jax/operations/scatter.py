"""Sums written by index, where several meet: exact, on a grid for each target."""

from typing import Any

import jax
from jax import Array, lax
from jax import numpy as jnp

from repro.portable.backends.jax import Backend
from repro.portable.definitions import targets
from repro.portable.modes.jax.dispatcher.registry import define, guard
from repro.portable.modes.jax.dispatcher.types import as_float32


@define("scatter_add")
def scatter_add(operand: Array, indices: Array, updates: Array, **how: Any) -> Array:
    return _plus(operand, indices, updates, how)


@define("scatter_sub")
def scatter_sub(operand: Array, indices: Array, updates: Array, **how: Any) -> Array:
    return _plus(operand, indices, -updates, how)


def _plus(operand: Array, indices: Array, updates: Array, how: dict[str, Any]) -> Array:
    """A grid for each row of the operand: what it has in the axes after those that are indexed.

    Where updates are parts of rows, each number has one.
    """
    if not updates.size:
        return operand
    numbers, options = (
        how["dimension_numbers"],
        {"indices_are_sorted": how["indices_are_sorted"], "unique_indices": how["unique_indices"]},
    )
    mode, x = how["mode"], as_float32(updates)
    batch = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    windows = [axis for axis in range(operand.ndim) if axis not in batch]
    last = max(numbers.scatter_dims_to_operand_dims, default=-1)
    rest = dict(zip(windows, numbers.update_window_dims, strict=True))
    whole = all(updates.shape[rest[axis]] == operand.shape[axis] for axis in windows)
    axes = tuple(rest[axis] for axis in windows if whole and axis > last)
    kept = tuple(1 if whole and axis > last and axis in rest else size for axis, size in enumerate(operand.shape))
    sizes = tuple(
        1 if axis in batch else updates.shape[rest[axis]] if kept[axis] > 1 else 1 for axis in range(operand.ndim)
    )
    places = lax.GatherDimensionNumbers(
        offset_dims=numbers.update_window_dims,
        collapsed_slice_dims=numbers.inserted_window_dims,
        start_index_map=numbers.scatter_dims_to_operand_dims,
        operand_batching_dims=numbers.operand_batching_dims,
        start_indices_batching_dims=numbers.scatter_indices_batching_dims,
    )

    def meet(most: Array) -> Array:
        return lax.scatter_max(jnp.zeros(kept, most.dtype), indices, most, numbers, mode=mode, **options)

    def spread(e: Array) -> Array:
        return lax.gather(e, indices, places, sizes, mode=mode, fill_value=0, **options)

    def add(q: Array) -> Array:
        return lax.scatter_add(jnp.zeros(operand.shape), indices, q, numbers, mode=mode, **options)

    return operand.astype(jnp.float64) + targets.added(Backend, x, axes, updates.size, meet, spread, add)


@guard("scatter_mul")
def _multiplied(_: Any, *, unique_indices: bool, **__: Any) -> str:
    """Where several products meet, XLA takes them in the order of the updates, but only on CPUs."""
    ordered = unique_indices or jax.default_backend() == "cpu"
    return "" if ordered else "products at repeated indices have no order on this device"
