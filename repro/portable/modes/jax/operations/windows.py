"""Sums over windows, and what pooling hands back.

Numbers of a window are added in float64, one after another, in the order of their places.
"""

import itertools
from collections.abc import Sequence
from typing import Any

from jax import Array, lax
from jax import numpy as jnp

from repro.portable.backends.jax import Backend
from repro.portable.definitions import sums
from repro.portable.modes.jax.dispatcher.registry import define
from repro.portable.modes.jax.dispatcher.types import as_float32

Pairs = Sequence[tuple[int, int]]


@define("reduce_window_sum")
def reduce_window_sum(
    x: Array,
    *,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Pairs,
    base_dilation: Sequence[int],
    window_dilation: Sequence[int],
    **_: Any,
) -> Array:
    x = as_float32(x)
    edges = [(*pair, hole - 1) for pair, hole in zip(padding, base_dilation, strict=True)]
    x = lax.pad(x, jnp.zeros((), x.dtype), edges)
    for axis, size in enumerate(window_dimensions):  # a window over all of an axis is a sum along it
        if size == x.shape[axis] > 1 and window_dilation[axis] == 1:
            x = sums.exact(Backend, x, (axis,)).astype(x.dtype)
            window_dimensions = [*window_dimensions[:axis], 1, *window_dimensions[axis + 1 :]]
    sizes = [
        max(0, (length - (size - 1) * step - 1) // stride + 1)
        for length, size, step, stride in zip(x.shape, window_dimensions, window_dilation, window_strides, strict=True)
    ]
    if 0 in sizes:
        return jnp.zeros(sizes, x.dtype)
    total = None
    for place in itertools.product(*(range(size) for size in window_dimensions)):
        begin = [at * step for at, step in zip(place, window_dilation, strict=True)]
        part = _strided(x, begin, sizes, window_strides).astype(jnp.float64)
        total = part if total is None else total + part
    return total


def _strided(x: Array, begin: Sequence[int], sizes: Sequence[int], strides: Sequence[int]) -> Array:
    ends = [start + (size - 1) * step + 1 for start, size, step in zip(begin, sizes, strides, strict=True)]
    return lax.slice(x, begin, ends, strides)


def _chosen(x: Array, windows: Sequence[int], strides: Sequence[int], padding: Pairs, select: Any) -> tuple[Array, Any]:
    """For each window which of its numbers is chosen, as XLA does: one stays while `select` holds for it and the next."""
    name = getattr(select, "name", str(select))
    low = {"ge": -jnp.inf, "le": jnp.inf}[name]
    better = {"ge": jnp.greater_equal, "le": jnp.less_equal}[name]
    padded = lax.pad(x, jnp.asarray(low, x.dtype), [(*pair, 0) for pair in padding])
    there = lax.pad(jnp.ones(x.shape, bool), jnp.asarray(False), [(*pair, 0) for pair in padding])
    sizes = [(n - size) // step + 1 for n, size, step in zip(padded.shape, windows, strides, strict=True)]
    best, chosen = None, jnp.full(sizes, -1)
    for number, place in enumerate(itertools.product(*(range(size) for size in windows))):
        value, inside = _strided(padded, place, sizes, strides), _strided(there, place, sizes, strides)
        takes = inside & ((chosen < 0) if best is None else (chosen < 0) | ~better(best, value))
        best = value if best is None else jnp.where(takes, value, best)
        chosen = jnp.where(takes, number, chosen)
    return chosen, sizes


@define("select_and_scatter_add")
def select_and_scatter_add(
    source: Array,
    operand: Array,
    *,
    select_prim: Any,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Pairs,
    **_: Any,
) -> Array:
    """The gradient of a maximum over windows."""
    if not operand.size:
        return operand
    chosen, sizes = _chosen(operand, window_dimensions, window_strides, padding, select_prim)
    lengths = [size + sum(pair) for size, pair in zip(operand.shape, padding, strict=True)]
    total = jnp.zeros(lengths)
    wide = source.astype(jnp.float64)
    for number, place in enumerate(itertools.product(*(range(size) for size in window_dimensions))):
        edges = [
            (at, length - at - (size - 1) * step - 1, step - 1)
            for at, length, size, step in zip(place, lengths, sizes, window_strides, strict=True)
        ]
        total = total + lax.pad(jnp.where(chosen == number, wide, 0.0), jnp.zeros(()), edges)
    begin = [low for low, _ in padding]
    return lax.slice(total, begin, [low + size for low, size in zip(begin, operand.shape, strict=True)])


@define("select_and_gather_add")
def select_and_gather_add(
    tangents: Array,
    operand: Array,
    *,
    select_prim: Any,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Pairs,
    **_: Any,
) -> Array:
    """The tangent at the maximum of each window."""
    chosen, sizes = _chosen(operand, window_dimensions, window_strides, padding, select_prim)
    padded = lax.pad(tangents, jnp.zeros((), tangents.dtype), [(*pair, 0) for pair in padding])
    result = jnp.zeros(sizes, tangents.dtype)
    for number, place in enumerate(itertools.product(*(range(size) for size in window_dimensions))):
        result = jnp.where(chosen == number, _strided(padded, place, sizes, window_strides), result)
    return result
