"""Sparse tensors: sums, products, and the softmax of what a row has."""

import numpy as np

from repro.portable.backends.numpy import Array, Backend
from repro.portable.definitions import softmax, sparse
from repro.portable.modes.tensorflow.dispatcher.dispatch import Attributes, define
from repro.portable.modes.tensorflow.dispatcher.types import as_float32, cast_back
from repro.portable.modes.tensorflow.operations.products import matmul
from repro.portable.modes.tensorflow.operations.scatter import added, scatter_add, scattered


def _kept(shape: Array, axes: Array) -> list[int]:
    """The axes that are not summed over."""
    along = {int(axis) % len(shape) for axis in axes.reshape(-1)}
    return [axis for axis in range(len(shape)) if axis not in along]


@define("SparseReduceSum")
def sparse_sum(given: Attributes, index: Array, values: Array, shape: Array, axes: Array) -> Array:
    """The sums along axes, 0 where there is no number."""
    kept = _kept(shape, axes)
    sums = scattered(index[:, kept], values, tuple(map(int, shape[kept])))
    if given["keep_dims"]:
        sums = sums.reshape([int(size) if axis in kept else 1 for axis, size in enumerate(shape)])
    return cast_back(sums, values.dtype)


@define("SparseReduceSumSparse")
def sparse_sum_of_sparse(
    given: Attributes, index: Array, values: Array, shape: Array, axes: Array
) -> tuple[Array, Array, Array]:
    """The sums along axes where there are numbers: their places, they themselves, and the shape."""
    kept = _kept(shape, axes)
    places, meets = np.unique(index[:, kept], axis=0, return_inverse=True)
    sums = added(meets.reshape(-1), as_float32(values).reshape(-1, 1), len(places)).reshape(-1)
    if given["keep_dims"]:
        whole = np.zeros((len(places), len(shape)), np.int64)
        whole[:, kept] = places
        size = np.ones_like(shape)
        size[kept] = shape[kept]
        return whole, cast_back(sums, values.dtype), size
    return places, cast_back(sums, values.dtype), shape[kept]


@define("SparseSoftmax")
def sparse_softmax(given: Attributes, index: Array, values: Array, shape: Array) -> Array:
    """The softmax of the numbers that each row has, for all rows of one length at a time."""
    _, row, lengths = np.unique(index[:, :-1], axis=0, return_inverse=True, return_counts=True)
    order, begins = np.argsort(row.reshape(-1), kind="stable"), np.cumsum(lengths) - lengths
    x = as_float32(values)
    result = np.empty_like(x)
    for length in np.unique(lengths):
        places = order[begins[lengths == length][:, None] + np.arange(length)]
        result[places] = softmax.shares(Backend, x[places])
    return cast_back(result, values.dtype)


@define("SparseMatMul")
def product_of_zeros(given: Attributes, a: Array, b: Array, slices: int) -> Array:
    """The product of matrices that are said to have many zeros, float32."""
    return matmul(given, as_float32(a), as_float32(b), slices=slices)


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
