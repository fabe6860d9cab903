"""Sums and products along axes, and reductions by functions of programs."""

import math
from typing import Any

import jax
from jax import Array, lax
from jax import numpy as jnp
from jax._src import core

from repro.portable.backends.jax import Backend
from repro.portable.definitions import doubles, grids, sums
from repro.portable.definitions.grids import check_length
from repro.portable.modes.jax.dispatcher.exact import EXACT
from repro.portable.modes.jax.dispatcher.gate import define, guard
from repro.portable.modes.jax.operations import calls
from repro.portable.numbers.constants import SUM_BITS


def exact(x: Array, axes: tuple[int, ...]) -> Array:
    """The sum along the axes, float64, with axes of size 1."""
    if x.dtype == jnp.float64:
        return doubles.total(Backend, x, axes)
    return (
        grids.exact_sum(Backend, x.astype(jnp.float32), axes)
        if x.size
        else x.astype(jnp.float64).sum(axes, keepdims=True)
    )


@define("reduce_sum")
def reduce_sum(x: Array, *, axes: tuple[int, ...], **_: Any) -> Array:
    if not axes:
        return x
    if x.dtype == jnp.float64 or not x.size:
        return jnp.squeeze(exact(x, axes), axes)
    x = x.astype(jnp.float32)
    if calls.adds(x.size) and sorted(axes) == list(range(min(axes), max(axes) + 1)):
        check_length(math.prod(x.shape[axis] for axis in axes), SUM_BITS)
        return calls.total(x, axes)
    return jnp.squeeze(sums.total(Backend, x, axes), axes)


@define("cumsum")
def cumsum(x: Array, *, axis: int, reverse: bool) -> Array:
    """Sums of the first numbers along an axis: on one grid for each line, where they are exact."""
    if not x.size:
        return x
    if x.dtype == jnp.float64:
        bits = doubles.sum_bits(x.shape[axis])
        parts, unit = doubles.slices(Backend, x, (axis,), bits)
        return doubles.joined([lax.cumsum(part, axis, reverse) for part in parts], bits) * unit
    q, p = grids.quantize(Backend, x.astype(jnp.float32), (axis,), SUM_BITS)
    total = lax.cumsum(q.astype(jnp.float64), axis, reverse)
    return (total * (p.astype(jnp.float64) * 2.0**-SUM_BITS)).astype(jnp.float32)


@define("reduce_prod")
def reduce_prod(x: Array, *, axes: tuple[int, ...], **_: Any) -> Array:
    """Numbers are multiplied with their neighbors, in rounds, in float64: the order depends on their number alone."""
    rest = [axis for axis in range(x.ndim) if axis not in axes]
    shape = [x.shape[axis] for axis in rest]
    values = x.transpose(*rest, *axes).reshape(*shape, math.prod(x.shape[axis] for axis in axes)).astype(jnp.float64)
    if not values.shape[-1]:
        return jnp.ones(shape, x.dtype)
    while values.shape[-1] > 1:
        even = values.shape[-1] & ~1
        values = jnp.concatenate([values[..., 0:even:2] * values[..., 1:even:2], values[..., even:]], -1)
    return values[..., 0]


@define("cumprod")
def cumprod(x: Array, *, axis: int, reverse: bool) -> Array:
    values = jnp.moveaxis(x.astype(jnp.float64), axis, -1)
    values, step = (values[..., ::-1] if reverse else values), 1
    while step < values.shape[-1]:
        values = jnp.concatenate([values[..., :step], values[..., step:] * values[..., :-step]], -1)
        step *= 2
    return jnp.moveaxis(values[..., ::-1] if reverse else values, -1, axis)


@define("cumlogsumexp")
def cumlogsumexp(x: Array, *, axis: int, reverse: bool) -> Array:
    from repro.portable.definitions.functions.logarithmic import logaddexp
    from repro.portable.modes.jax.operations.functions import evaluate

    values = jnp.moveaxis(x, axis, -1)
    values, step = (values[..., ::-1] if reverse else values), 1
    while step < values.shape[-1]:
        sums = evaluate(logaddexp, values[..., step:], values[..., :-step]).astype(x.dtype)
        values = jnp.concatenate([values[..., :step], sums], -1)
        step *= 2
    return jnp.moveaxis(values[..., ::-1] if reverse else values, -1, axis)


@guard("reduce")
def _of_exact_parts(_: Any, *, jaxpr: Any, **__: Any) -> str:
    names = (eqn.primitive.name for eqn in _equations(jaxpr.jaxpr))
    other = next((name for name in names if name.replace("-", "_") not in EXACT), None)
    return f"its function calls {other}" if other else ""


def _equations(jaxpr: Any) -> list[Any]:
    """With those of functions that are called."""
    inner = [each for called in core.subjaxprs(jaxpr) for each in _equations(called)]
    return [*jaxpr.eqns, *inner]


@define("reduce")
def reduce(*arrays: Array, jaxpr: Any, dimensions: tuple[int, ...], **_: Any) -> list[Array]:
    """Reduces by a function of the program, applied to neighbors, in rounds, as reduce_prod."""
    half = len(arrays) // 2
    rest = [axis for axis in range(arrays[0].ndim) if axis not in dimensions]
    shape = [arrays[0].shape[axis] for axis in rest]
    values = [x.transpose(*rest, *dimensions).reshape(*shape, -1) for x in arrays[:half]]
    function = core.jaxpr_as_fun(jaxpr)
    for _ in (*shape, 1):
        function = jax.vmap(function)
    while (size := values[0].shape[-1]) > 1:
        even = size & ~1
        pairs = function(*(x[..., 0:even:2] for x in values), *(x[..., 1:even:2] for x in values))
        values = [jnp.concatenate([pair, x[..., even:]], -1) for pair, x in zip(pairs, values, strict=True)]
    first = [jnp.broadcast_to(x, (*shape, 1)) for x in arrays[half:]]
    return [x[..., 0] for x in (function(*first, *values) if values[0].size else first)]
