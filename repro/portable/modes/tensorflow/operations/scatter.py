"""Sums of numbers that meet at an index: segments, scatter, and gradients of gather."""

import math
from typing import Any

import numpy as np
from tensorflow.python.framework import dtypes
from tensorflow.python.ops import array_ops, gen_array_ops, gen_resource_variable_ops

from repro.portable.backends.numpy import Array, Backend
from repro.portable.compiler.numpy.plan import run
from repro.portable.definitions import sparse, targets
from repro.portable.definitions.grids import check_length
from repro.portable.modes.tensorflow.dispatcher.dispatch import Attributes, compose, define
from repro.portable.modes.tensorflow.dispatcher.types import as_float32, cast_back
from repro.portable.numbers.constants import SUM_BITS


def added(index: Array, x: Array, rows: int) -> Array:
    """Rows of numbers [M, C] added up by their index [M] -> float64 [rows, C]: exact, on a grid for each row."""
    if not x.size:
        return np.zeros((rows, x.shape[1]))
    check_length(len(x), SUM_BITS)
    x = np.ascontiguousarray(x)
    most = Backend.largest_at(index, run((1,), targets.magnitudes, x, (1,)), rows)
    e = targets.exponents(Backend, most)
    slices = run((), targets.slices, x, e[index], len(x))
    return targets.joined(Backend, [Backend.add_at(index, q, rows) for q in slices], e, len(x))


def segments(x: Array, ids: Array, number: int) -> Array:
    """The sums of the slices of x with each id, float64; ids below 0 count for nothing."""
    flat, rest = ids.reshape(-1), x.shape[ids.ndim :]
    rows = as_float32(x).reshape(len(flat), math.prod(rest))
    if flat.size and flat.max() >= number:
        raise ValueError(f"segment id {flat.max()} is not below {number}")
    return added(flat[flat >= 0], rows[flat >= 0], number).reshape(number, *rest)


@define("UnsortedSegmentSum")
def unsorted_sum(given: Attributes, x: Array, ids: Array, number: Array) -> Array:
    return cast_back(segments(x, ids, int(number)), x.dtype)


def _counts(ids: Array, counts: Array) -> Array:
    number = np.bincount(ids, minlength=len(counts)).astype(np.float64)
    return np.maximum(number, 1.0).reshape(-1, *[1] * (counts.ndim - 1))


@define("SegmentSum", "SegmentSumV2")
def segment_sum(given: Attributes, x: Array, ids: Array, *number: Array) -> Array:
    return cast_back(segments(x, ids, int(number[0]) if number else int(ids[-1]) + 1 if ids.size else 0), x.dtype)


@define("SegmentMean")
def segment_mean(given: Attributes, x: Array, ids: Array) -> Array:
    sums = segments(x, ids, int(ids[-1]) + 1 if ids.size else 0)
    return cast_back(sums / _counts(ids, sums), x.dtype)


def _sparse(name: str, divide: Any) -> None:
    @define(name, f"{name}WithNumSegments")
    def forward(given: Attributes, x: Array, index: Array, ids: Array, *number: Array) -> Array:
        """Reduce segments of rows of x."""
        sums = segments(x[index], ids, int(number[0]) if number else int(ids[-1]) + 1 if ids.size else 0)
        return cast_back(divide(sums, ids), x.dtype)


_sparse("SparseSegmentSum", lambda found, ids: found)
_sparse("SparseSegmentMean", lambda found, ids: found / _counts(ids, found))
_sparse("SparseSegmentSqrtN", lambda found, ids: found / np.sqrt(_counts(ids, found)))


def _sparse_gradient(name: str, share: Any) -> None:
    @define(name)
    def backward(given: Attributes, gradient: Array, index: Array, ids: Array, rows: Array) -> Array:
        """The gradient with respect to rows, each with its share."""
        g = as_float32(gradient)
        if share is not None:
            g = (g.astype(np.float64) * share(_counts(ids, g))).astype(g.dtype)
        return cast_back(segments(g[ids], index, int(rows)), gradient.dtype)


_sparse_gradient("SparseSegmentSumGrad", None)
_sparse_gradient("SparseSegmentMeanGrad", lambda counts: 1.0 / counts)
_sparse_gradient("SparseSegmentSqrtNGrad", lambda counts: 1.0 / np.sqrt(counts))


@define("Bincount", "DenseBincount")
def counted(given: Attributes, index: Array, size: Array, weights: Array) -> Array:
    """The sums of the weights of each number, along the last axis; numbers from `size` on count for nothing."""
    if given.get("binary_output") or not weights.size:
        raise ValueError("numbers without weights are counted by integers: cast the result")
    rows, number = (len(index) if index.ndim == 2 else 1), int(size)
    flat = index.reshape(rows, -1).astype(np.int64)
    there = (flat < number).reshape(-1)
    places = (flat + np.arange(rows)[:, None] * number).reshape(-1)[there]
    sums = added(places, as_float32(weights).reshape(-1, 1)[there], rows * number)
    return cast_back(sums.reshape((rows, number) if index.ndim == 2 else (number,)), weights.dtype)


@define("SparseReduceSum")
def sparse_sum(given: Attributes, index: Array, values: Array, shape: Array, axes: Array) -> Array:
    """The sums along axes, 0 where there is no number."""
    outer = tuple(map(int, shape))
    along = {int(axis) % len(outer) for axis in axes.reshape(-1)}
    kept = [axis for axis in range(len(outer)) if axis not in along]
    sums = _scattered(index[:, kept], values, tuple(outer[axis] for axis in kept))
    if given["keep_dims"]:
        sums = sums.reshape([1 if axis in along else size for axis, size in enumerate(outer)])
    return cast_back(sums, values.dtype)


@define("SparseTensorDenseAdd")
def sparse_add(given: Attributes, index: Array, values: Array, shape: Array, x: Array) -> Array:
    """x and the sum of what is added at each place, rounded once."""
    if tuple(map(int, shape)) != x.shape:
        raise ValueError(f"a sparse tensor {shape.tolist()} and a dense one {list(x.shape)} have no sum")
    return scatter_add(given, x, index, values)


@define("SparseFillEmptyRowsGrad")
def filled_rows(given: Attributes, place: Array, gradient: Array) -> tuple[Array, Array]:
    """The gradients of the numbers, each at its place among all, and of the default, which is at all others."""
    others = np.ones(len(gradient), bool)
    others[place] = False
    rest = as_float32(gradient)[others].reshape(-1, 1)
    default = added(np.zeros(len(rest), np.int64), rest, 1).reshape(())
    return gradient[place], cast_back(default, gradient.dtype)


@define("SparseTensorDenseMatMul")
def sparse_product(given: Attributes, index: Array, values: Array, shape: Array, b: Array) -> Array:
    rows, columns = index[:, 0], index[:, 1]
    height, width = (int(size) for size in shape)
    if given["adjoint_a"]:
        rows, columns, height, width = columns, rows, width, height
    right = as_float32(b).T if given["adjoint_b"] else as_float32(b)
    if len(right) != width:
        raise ValueError(f"a matrix [{height}, {width}] and one {list(right.shape)} have no product")
    return cast_back(sparse.product(Backend, rows, columns, as_float32(values), right, height), b.dtype)


# --- scatter ----------------------------------------------------------------------------------------------------------


def _flat(index: Array, shape: tuple[int, ...]) -> tuple[Array, tuple[int, ...], tuple[int, ...]]:
    """Indices [..., D] as numbers of slices, and the shapes of what is indexed and of a slice."""
    depth = index.shape[-1]
    outer, inner = shape[:depth], shape[depth:]
    if index.size and ((index < 0) | (index >= np.array(outer))).any():
        raise ValueError(f"indices are not all in {list(outer)}")
    place = np.zeros(index.shape[:-1], np.int64)
    for axis, size in enumerate(outer):
        place = place * size + index[..., axis]
    return place.reshape(-1), outer, inner


def _scattered(index: Array, updates: Array, shape: tuple[int, ...]) -> Array:
    place, outer, inner = _flat(index, shape)
    rows = as_float32(updates).reshape(len(place), math.prod(inner))
    return added(place, rows, math.prod(outer)).reshape(shape)


@define("ScatterNd")
def scatter(given: Attributes, index: Array, updates: Array, shape: Array) -> Array:
    return cast_back(_scattered(index, updates, tuple(map(int, shape))), updates.dtype)


@define("TensorScatterAdd", "ScatterNdNonAliasingAdd")
def scatter_add(given: Attributes, x: Array, index: Array, updates: Array) -> Array:
    """x and what is added, rounded once."""
    return cast_back(as_float32(x).astype(np.float64) + _scattered(index, updates, x.shape), x.dtype)


@define("TensorScatterSub")
def scatter_sub(given: Attributes, x: Array, index: Array, updates: Array) -> Array:
    return scatter_add(given, x, index, -updates)


@define("TensorScatterUpdate")
def scatter_update(given: Attributes, x: Array, index: Array, updates: Array) -> Array:
    """The last of those that are written to one place stays."""
    place, outer, inner = _flat(index, x.shape)
    order = np.argsort(place, kind="stable")
    last = order[np.append(np.diff(place[order]) > 0, True)] if len(place) else order
    result = x.copy().reshape(math.prod(outer), math.prod(inner))
    result[place[last]] = updates.reshape(len(place), math.prod(inner))[last]
    return result.reshape(x.shape)


def _variable(name: str, scatter: Any, nd: bool) -> None:
    @compose(name)
    def changed(given: Attributes, resource: Any, index: Any, updates: Any) -> Any:
        value = gen_resource_variable_ops.read_variable_op(resource, dtypes.as_dtype(updates.dtype))
        places = index if nd else array_ops.expand_dims(index, -1)
        shape = array_ops.concat([array_ops.shape(index), array_ops.shape(value)[1:]], 0)
        whole = updates if nd else array_ops.broadcast_to(updates, shape)
        return _assigned(resource, scatter(value, places, whole))


def _assigned(resource: Any, value: Any) -> Any:
    result = gen_resource_variable_ops.assign_variable_op(resource, value)
    return [] if result is None else result


for _name, _scatter in {
    "Add": gen_array_ops.tensor_scatter_add,
    "Sub": gen_array_ops.tensor_scatter_sub,
    "Update": gen_array_ops.tensor_scatter_update,
}.items():
    _variable(f"ResourceScatter{_name}", _scatter, False)
    _variable(f"ResourceScatterNd{_name}", _scatter, True)
