"""Sums, means, norms, products and scans along axes."""

import math
import operator
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
from tensorflow.python.ops import gen_math_ops

from repro.portable.backends.numpy import Array, Backend
from repro.portable.compiler.numpy import elements
from repro.portable.compiler.numpy.copies import copied
from repro.portable.compiler.numpy.plan import run
from repro.portable.definitions import scans
from repro.portable.definitions import sums as definitions
from repro.portable.definitions.functions import logarithmic
from repro.portable.modes.tensorflow.dispatcher.dispatch import Attributes, compose, define
from repro.portable.modes.tensorflow.dispatcher.types import as_float32, axes_of, cast_back
from repro.portable.modes.tensorflow.operations.functions import evaluate

Axes = tuple[int, ...]


def exact(x: Array, axes: Axes) -> Array:
    """The sum, float64, with axes of size 1."""
    return run(axes, definitions.exact, x, axes)


def total(x: Array, axes: Axes) -> Array:
    """The sum, of the type of x, with axes of size 1."""
    return run(axes, definitions.total, x, axes)


def mean(x: Array, axes: Axes) -> Array:
    """The mean, of the type of x, with axes of size 1."""
    return run(axes, definitions.mean, x, axes)


def squares(x: Array, axes: Axes) -> Array:
    """The sum of squares, float64, with axes of size 1."""
    return run(axes, definitions.sum_of_squares, x, axes)


def norm(x: Array, axes: Axes) -> Array:
    """The Euclidean norm, of the type of x, with axes of size 1."""
    return run(axes, definitions.norm, x, axes)


def along(function: Callable[[Array, Axes], Array], x: Array, given: Axes, keep: bool) -> Array:
    """A function of numbers and axes, which stay with size 1 only if they are to be kept; rounded to the type of x.

    Without axes the numbers themselves: TensorFlow's gradients ask for that where a shape is not known.
    """
    if not given and function in (total, mean, product):
        return copied(x)
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
    """The product, float64, without the axes."""
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    values = x.astype(np.float64).transpose(*kept, *axes)
    return scans.product(Backend, values.reshape([x.shape[axis] for axis in kept] + [-1]))


for _name, _function in {"Sum": total, "Mean": mean, "EuclideanNorm": norm, "Prod": product}.items():
    define(_name, reads=None if _function is product else (1,))(_reduction(_function))


@define("L2Loss")
def l2_loss(given: Attributes, x: Array) -> Array:
    return along(lambda wide, axes: squares(wide, axes) * 0.5, x, tuple(range(x.ndim)), False)


@define("BiasAddGrad", reads=())
def bias_gradient(given: Attributes, gradient: Array) -> Array:
    channel = 1 if given.get("data_format") == "NCHW" else gradient.ndim - 1
    return along(total, gradient, tuple(axis for axis in range(gradient.ndim) if axis != channel), False)


@compose("AccumulateNV2")
def accumulated(given: Attributes, *tensors: Any) -> Any:
    """AddN: TensorFlow rewrites graphs that have this operation."""
    return gen_math_ops.add_n(list(tensors))


@define("AddN", reads=())
def add_n(given: Attributes, *arrays: Array) -> Array:
    """In their order; halves are rounded once."""
    return cast_back(elements.run(_added, *map(as_float32, arrays)), arrays[0].dtype)


def _added(xp: Any, *arrays: Array) -> Array:
    return reduce(operator.add, arrays)


# --- scans ------------------------------------------------------------------------------------------------------------


def scan(function: Callable[[Array, int], Array], neutral: float) -> Callable[[Attributes, Array, Array], Array]:
    """A scan along an axis, in both directions, with the number itself or without."""

    def scanned(given: Attributes, x: Array, axis: Array) -> Array:
        if not x.size or not x.ndim:
            return x.copy()
        along = int(axis) % x.ndim
        values = np.flip(as_float32(x), along) if given.get("reverse") else as_float32(x)
        if given.get("exclusive"):
            edge = np.full_like(values.take([0], along), neutral)
            values = np.concatenate([edge, values.take(range(x.shape[along] - 1), along)], along)
        values = function(np.ascontiguousarray(values), along)
        return cast_back(np.ascontiguousarray(np.flip(values, along) if given.get("reverse") else values), x.dtype)

    return scanned


def _cumulative_sum(x: Array, axis: int) -> Array:
    return scans.cumulative_sum(Backend, x.astype(np.float64), axis).astype(x.dtype)


def _cumulative_product(x: Array, axis: int) -> Array:
    return scans.cumulative(Backend, x.astype(np.float64), axis, operator.mul)


def _cumulative_log(x: Array, axis: int) -> Array:
    """The logarithm of the sum of exponential functions."""
    return scans.cumulative(Backend, x, axis, lambda *arrays: evaluate(logarithmic.logaddexp, *arrays))


define("CumulativeLogsumexp")(scan(_cumulative_log, -math.inf))
cumsum = define("Cumsum")(scan(_cumulative_sum, 0.0))
define("Cumprod")(scan(_cumulative_product, 1.0))
