"""Sums, means, norms, products and scans along axes."""

import math
from collections.abc import Callable

import numpy as np

from repro.portable.backends.numpy import Array, Backend
from repro.portable.compiler.numpy.plan import run
from repro.portable.definitions import doubles, functions, grids
from repro.portable.definitions import sums as definitions
from repro.portable.definitions.functions import logarithmic
from repro.portable.modes.tensorflow.dispatcher.dispatch import Attributes, define
from repro.portable.modes.tensorflow.dispatcher.types import as_float32, axes_of, cast_back
from repro.portable.numbers.constants import SUM_BITS

Axes = tuple[int, ...]


def exact(x: Array, axes: Axes) -> Array:
    """The sum of float32 or float64 numbers, float64, with axes of size 1."""
    if not x.size:
        return x.sum(axes, keepdims=True, dtype=np.float64)
    return doubles.total(Backend, x, axes) if x.dtype == np.float64 else run(axes, grids.exact_sum, x, axes)


def total(x: Array, axes: Axes) -> Array:
    """The sum over axes, rounded to the type of x."""
    if x.dtype == np.float64 or not x.size:
        return exact(x, axes).astype(x.dtype)
    return run(axes, definitions.total, x, axes)


def mean(x: Array, axes: Axes) -> Array:
    """The mean along axes, of the type of x, with axes of size 1."""
    if x.dtype == np.float64 or not x.size:
        terms = math.prod(x.shape[axis] for axis in axes)
        return (exact(x, axes) * (1.0 / terms if terms else math.nan)).astype(x.dtype)
    return run(axes, definitions.mean, x, axes)


def squares(x: Array, axes: Axes) -> Array:
    """The sum of squares, float64, with axes of size 1."""
    if x.dtype == np.float64 or not x.size:
        return exact(x * x, axes)
    return run(axes, definitions.sum_of_squares, x, axes)


def norm(x: Array, axes: Axes) -> Array:
    return np.sqrt(squares(x, axes)) if x.dtype == np.float64 else Backend.r32(np.sqrt(squares(x, axes)))


def along(function: Callable[[Array, Axes], Array], x: Array, given: Axes, keep: bool) -> Array:
    """A function of numbers and axes, which stay with size 1 only if they are to be kept; rounded to the type of x.

    Without axes the numbers themselves: TensorFlow's gradients ask for that where a shape is not known.
    """
    if not given and function in (total, mean, product):
        return x.copy()
    wide = np.ascontiguousarray(as_float32(x))
    axes = given or (x.ndim,)
    result = function(wide if given else wide[..., None], axes)
    shape = [1 if axis in given else size for axis, size in enumerate(x.shape) if keep or axis not in given]
    return cast_back(result.reshape(shape), x.dtype)


def _reduction(function: Callable[[Array, Axes], Array]) -> Callable[[Attributes, Array, Array], Array]:
    def reduced(given: Attributes, x: Array, axes: Array) -> Array:
        return along(function, x, axes_of(axes, x.ndim), bool(given["keep_dims"]))

    return reduced


def product(x: Array, axes: Axes) -> Array:
    """The product along axes, of neighbors, in rounds, float64."""
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    values = x.astype(np.float64).transpose(*kept, *axes).reshape([x.shape[axis] for axis in kept] + [-1])
    if not values.shape[-1]:
        values = np.ones((*values.shape[:-1], 1))
    while values.shape[-1] > 1:
        even = values.shape[-1] & ~1
        values = np.concatenate([values[..., 0:even:2] * values[..., 1::2], values[..., even:]], -1)
    return values


for _name, _function in {"Sum": total, "Mean": mean, "EuclideanNorm": norm, "Prod": product}.items():
    define(_name)(_reduction(_function))


@define("L2Loss")
def l2_loss(given: Attributes, x: Array) -> Array:
    return along(lambda wide, axes: squares(wide, axes) * 0.5, x, tuple(range(x.ndim)), False)


@define("BiasAddGrad")
def bias_gradient(given: Attributes, gradient: Array) -> Array:
    channel = 1 if given.get("data_format") == "NCHW" else gradient.ndim - 1
    return along(total, gradient, tuple(axis for axis in range(gradient.ndim) if axis != channel), False)


@define("AddN", "AccumulateNV2")
def add_n(given: Attributes, *arrays: Array) -> Array:
    """In their order; halves are rounded once."""
    total = as_float32(arrays[0])
    for each in arrays[1:]:
        total = total + as_float32(each)
    return cast_back(total, arrays[0].dtype)


# --- scans ------------------------------------------------------------------------------------------------------------


def _scan(function: Callable[[Array], Array], neutral: float) -> Callable[[Attributes, Array, Array], Array]:
    """A scan of the last axis, for any axis, in both directions, with the number itself or without."""

    def scanned(given: Attributes, x: Array, axis: Array) -> Array:
        if not x.size or not x.ndim:
            return x.copy()
        values = np.moveaxis(as_float32(x), int(axis), -1)
        values = values[..., ::-1] if given.get("reverse") else values
        if given.get("exclusive"):
            edge = np.full((*values.shape[:-1], 1), neutral, values.dtype)
            values = np.concatenate([edge, values[..., :-1]], -1)
        values = function(np.ascontiguousarray(values))
        values = values[..., ::-1] if given.get("reverse") else values
        return cast_back(np.moveaxis(values, -1, int(axis)), x.dtype)

    return scanned


def _cumulative_sum(x: Array) -> Array:
    """On one grid for each line, where the sums are exact."""
    axis = x.ndim - 1
    if x.dtype == np.float64:
        bits = doubles.sum_bits(x.shape[axis])
        parts, unit = doubles.slices(Backend, x, (axis,), bits)
        return doubles.joined([part.cumsum(axis) for part in parts], bits) * unit
    q, p = grids.quantize(Backend, x, (axis,), SUM_BITS)
    return (q.astype(np.float64).cumsum(axis) * (p.astype(np.float64) * 2.0**-SUM_BITS)).astype(np.float32)


def _cumulative_product(x: Array) -> Array:
    values, step = x.astype(np.float64), 1
    while step < values.shape[-1]:
        values = np.concatenate([values[..., :step], values[..., step:] * values[..., :-step]], -1)
        step *= 2
    return values


def _cumulative_log(x: Array) -> Array:
    """The logarithm of the sum of exponential functions."""
    function = logarithmic.logaddexp if x.dtype == np.float64 else functions.rounded(logarithmic.logaddexp)
    values, step = x, 1
    while step < values.shape[-1]:
        more = function(Backend, *(np.ascontiguousarray(each) for each in (values[..., step:], values[..., :-step])))  # type: ignore[arg-type]
        values = np.concatenate([values[..., :step], more], -1)
        step *= 2
    return values


define("CumulativeLogsumexp")(_scan(_cumulative_log, -math.inf))
define("Cumsum")(_scan(_cumulative_sum, 0.0))
define("Cumprod")(_scan(_cumulative_product, 1.0))
