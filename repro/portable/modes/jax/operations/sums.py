"""Sums and products along axes, and reductions by functions of programs."""

import math
import operator
from collections.abc import Callable
from typing import Any

import jax
from jax import Array, lax
from jax import numpy as jnp
from jax._src import core

from repro.portable.backends.jax import Backend
from repro.portable.definitions import scans, sums
from repro.portable.definitions.functions import logarithmic
from repro.portable.definitions.grids import check_length
from repro.portable.modes.jax.dispatcher.exact import EXACT
from repro.portable.modes.jax.dispatcher.registry import define, guard
from repro.portable.modes.jax.dispatcher.types import as_float32
from repro.portable.modes.jax.operations import calls
from repro.portable.modes.jax.operations.functions import evaluate
from repro.portable.numbers.constants import SUM_BITS


@define("reduce_sum")
def reduce_sum(x: Array, *, axes: tuple[int, ...], **_: Any) -> Array:
    if not axes:
        return x
    x = as_float32(x)
    if calls.adds(x, axes):
        check_length(math.prod(x.shape[axis] for axis in axes), SUM_BITS)
        return calls.total(x, axes)
    return jnp.squeeze(sums.total(Backend, x, axes), axes)


@define("reduce_prod")
def reduce_prod(x: Array, *, axes: tuple[int, ...], **_: Any) -> Array:
    rest = [axis for axis in range(x.ndim) if axis not in axes]
    shape = [*(x.shape[axis] for axis in rest), math.prod(x.shape[axis] for axis in axes)]
    return scans.product(Backend, x.transpose(*rest, *axes).reshape(shape).astype(jnp.float64))


# --- scans ------------------------------------------------------------------------------------------------------------


@define("cumsum")
def cumsum(x: Array, *, axis: int, reverse: bool) -> Array:
    if not x.size:
        return x
    values = lax.rev(x, (axis,)) if reverse else x
    result = scans.cumulative_sum(Backend, values.astype(jnp.float64), axis).astype(as_float32(x).dtype)
    return lax.rev(result, (axis,)) if reverse else result


def _scan(function: Callable[[Array], Array]) -> Callable[..., Array]:
    """A scan of the last axis, for any axis, in both directions."""

    def scanned(x: Array, *, axis: int, reverse: bool) -> Array:
        values = jnp.moveaxis(x, axis, -1)
        values = function(values[..., ::-1] if reverse else values)
        return jnp.moveaxis(values[..., ::-1] if reverse else values, -1, axis)

    return scanned


def _cumulative_product(x: Array) -> Array:
    return scans.cumulative(Backend, x.astype(jnp.float64), x.ndim - 1, operator.mul)


def _cumulative_log(x: Array) -> Array:
    """The logarithm of the sum of exponential functions."""
    return scans.cumulative(
        Backend, x, x.ndim - 1, lambda *pair: evaluate(logarithmic.logaddexp, *pair).astype(x.dtype)
    )


define("cumlogsumexp")(_scan(_cumulative_log))
define("cumprod")(_scan(_cumulative_product))


# --- functions of programs --------------------------------------------------------------------------------------------


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
