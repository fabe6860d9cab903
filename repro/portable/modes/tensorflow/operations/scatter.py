"""Sums of numbers that meet at an index: segments, scatter, and gradients of gather."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from tensorflow.python.framework import dtypes
from tensorflow.python.ops import array_ops, gen_array_ops, gen_resource_variable_ops

from repro.portable.backends.numpy import Array, Backend
from repro.portable.compiler.numpy.plan import run
from repro.portable.definitions import targets
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
    return cast_back(segments(x, ids, _segments(ids, number)), x.dtype)


def _segments(ids: Array, number: Sequence[Array] = ()) -> int:
    """As many segments as are asked for, or as sorted ids name."""
    return int(number[0]) if number else int(ids[-1]) + 1 if ids.size else 0


@define("SegmentMean")
def segment_mean(given: Attributes, x: Array, ids: Array) -> Array:
    sums = segments(x, ids, _segments(ids))
    return cast_back(sums / _counts(ids, sums), x.dtype)


def multiplied(x: Array, ids: Array, number: int) -> Array:
    """The products of the slices of x with each id, float64; 1 where there is none. Ids below 0 count for nothing.

    Neighbors meet, in rounds, in the order in which they come.
    """
    flat, rest = ids.reshape(-1), x.shape[ids.ndim :]
    if flat.size and flat.max() >= number:
        raise ValueError(f"segment id {flat.max()} is not below {number}")
    order = np.argsort(flat, kind="stable")[np.count_nonzero(flat < 0) :]
    rows, flat = x.reshape(len(flat), math.prod(rest)).astype(np.float64)[order], flat[order]
    even = _even(flat)
    while not even.all():
        meets = np.append(~even, False)[1:][even]  # before an odd one
        factors, flat = rows[~even], flat[even]
        rows = rows[even]
        rows[meets] *= factors
        even = _even(flat)
    result = np.ones((number, math.prod(rest)))
    result[flat] = rows
    return result.reshape(number, *rest)


def _even(ids: Array) -> Array:
    """Which of sorted ids are the first of their kind, the third, and so on."""
    return (np.arange(len(ids)) - np.searchsorted(ids, ids)) % 2 == 0


@define("UnsortedSegmentProd")
def unsorted_product(given: Attributes, x: Array, ids: Array, number: Array) -> Array:
    return cast_back(multiplied(x, ids, int(number)), x.dtype)


@define("SegmentProd", "SegmentProdV2")
def segment_product(given: Attributes, x: Array, ids: Array, *number: Array) -> Array:
    return cast_back(multiplied(x, ids, _segments(ids, number)), x.dtype)


def _sparse(name: str, divide: Any) -> None:
    @define(name, f"{name}WithNumSegments")
    def forward(given: Attributes, x: Array, index: Array, ids: Array, *number: Array) -> Array:
        """Reduce segments of rows of x."""
        sums = segments(x[index], ids, _segments(ids, number))
        return cast_back(divide(sums, ids), x.dtype)


_sparse("SparseSegmentSum", lambda found, ids: found)
_sparse("SparseSegmentMean", lambda found, ids: found / _counts(ids, found))
_sparse("SparseSegmentSqrtN", lambda found, ids: found / np.sqrt(_counts(ids, found)))


def _sparse_gradient(name: str, share: Any) -> None:
    def shared(gradient: Array, ids: Array) -> Array:
        g = as_float32(gradient)
        return g[ids] if share is None else (g.astype(np.float64) * share(_counts(ids, g))).astype(g.dtype)[ids]

    @define(name)
    def backward(given: Attributes, gradient: Array, index: Array, ids: Array, rows: Array) -> Array:
        """The gradient with respect to rows, each with its share."""
        return cast_back(segments(shared(gradient, ids), index, int(rows)), gradient.dtype)

    @define(f"{name}V2")
    def of_rows(given: Attributes, gradient: Array, index: Array, ids: Array, rows: Array) -> tuple[Array, Array]:
        """The gradient with respect to the rows that are read, and which these are."""
        read, place = np.unique(index, return_inverse=True)
        return cast_back(segments(shared(gradient, ids), place, len(read)), gradient.dtype), read


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


def scattered(index: Array, updates: Array, shape: tuple[int, ...]) -> Array:
    place, outer, inner = _flat(index, shape)
    rows = as_float32(updates).reshape(len(place), math.prod(inner))
    return added(place, rows, math.prod(outer)).reshape(shape)


@define("ScatterNd")
def scatter(given: Attributes, index: Array, updates: Array, shape: Array) -> Array:
    return cast_back(scattered(index, updates, tuple(map(int, shape))), updates.dtype)


@define("TensorScatterAdd", "ScatterNdNonAliasingAdd")
def scatter_add(given: Attributes, x: Array, index: Array, updates: Array) -> Array:
    """x and what is added, rounded once."""
    return cast_back(as_float32(x).astype(np.float64) + scattered(index, updates, x.shape), x.dtype)


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
