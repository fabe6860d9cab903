"""TensorFlow's operations of linear algebra: signatures of the definitions."""

import numpy as np
from tensorflow.python.framework import dtypes

from repro.portable.backends.numpy import Array, Backend
from repro.portable.definitions import linalg, matrix_functions, spectral
from repro.portable.modes.tensorflow.dispatcher.dispatch import Attributes, define
from repro.portable.modes.tensorflow.dispatcher.types import as_float32, cast_back


def _wide(x: Array) -> Array:
    return as_float32(x).astype(np.float64)


@define("Qr")
def qr(given: Attributes, a: Array) -> tuple[Array, Array]:
    q, r = linalg.qr(Backend, _wide(a), given["full_matrices"])
    return cast_back(q, a.dtype), cast_back(r, a.dtype)


@define("Cholesky")
def cholesky(given: Attributes, a: Array) -> Array:
    return cast_back(linalg.only_definite(Backend, linalg.cholesky(Backend, _wide(a))), a.dtype)


@define("MatrixTriangularSolve")
def triangular_solve(given: Attributes, a: Array, b: Array) -> Array:
    """x with A x = b, or A^T x = b."""
    wide, lower = _wide(a), given["lower"]
    if given["adjoint"]:
        wide, lower = wide.swapaxes(-1, -2), not lower
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    x = np.broadcast_to(_wide(b), (*batch, *b.shape[-2:]))
    return cast_back(linalg.triangular_solve(Backend, wide, x, lower), b.dtype)


def _solved(a: Array, b: Array, adjoint: bool) -> Array:
    wide = _wide(a)
    factors, _, order = linalg.lu(Backend, wide.swapaxes(-1, -2) if adjoint else wide)
    if (linalg.diagonal(Backend, factors) == 0).any():
        raise ValueError("Input matrix is not invertible.")
    return cast_back(linalg.lu_solve(Backend, factors, order, b), a.dtype)


@define("MatrixSolve")
def solve(given: Attributes, a: Array, b: Array) -> Array:
    return _solved(a, _wide(b), given["adjoint"])


@define("MatrixInverse")
def inverse(given: Attributes, a: Array) -> Array:
    return _solved(a, linalg.identity(Backend, a, *a.shape[-2:]), given["adjoint"])


@define("MatrixDeterminant")
def determinant(given: Attributes, a: Array) -> Array:
    factors, pivots, _ = linalg.lu(Backend, _wide(a))
    return cast_back(linalg.determinant(Backend, factors, pivots), a.dtype)


@define("LogMatrixDeterminant")
def log_determinant(given: Attributes, a: Array) -> tuple[Array, Array]:
    factors, pivots, _ = linalg.lu(Backend, _wide(a))
    sign, size = linalg.log_determinant(Backend, factors, pivots)
    return cast_back(sign, a.dtype), cast_back(size, a.dtype)


@define("Lu")
def lu(given: Attributes, a: Array) -> tuple[Array, Array]:
    """L and U in one matrix, and the order of rows."""
    if a.shape[-1] != a.shape[-2]:
        raise ValueError("Input matrix must be square.")
    factors, _, order = linalg.lu(Backend, _wide(a))
    if (linalg.diagonal(Backend, factors) == 0).any():
        raise ValueError("Input is not invertible.")
    return cast_back(factors, a.dtype), order.astype(dtypes.as_dtype(given["output_idx_type"]).as_numpy_dtype)


@define("TridiagonalSolve")
def tridiagonal_solve(given: Attributes, diagonals: Array, b: Array) -> Array:
    """x with A x = b, always with pivots. The diagonals [..., 3, N] are that above, the main one, and that below."""
    above, on, below = np.moveaxis(_wide(diagonals), -2, 0)
    return cast_back(linalg.tridiagonal_solve(Backend, below, on, above, _wide(b)), b.dtype)


@define("TridiagonalMatMul")
def tridiagonal_product(given: Attributes, above: Array, on: Array, below: Array, x: Array) -> Array:
    """A x, the main diagonal first. Diagonals are [..., 1, N]."""
    upper, main, lower = (_wide(each)[..., 0, :, None] for each in (above, on, below))
    wide = _wide(x)
    total = main * wide
    total[..., :-1, :] += upper[..., :-1, :] * wide[..., 1:, :]
    total[..., 1:, :] += lower[..., 1:, :] * wide[..., :-1, :]
    return cast_back(total, x.dtype)


@define("Cross")
def cross(given: Attributes, a: Array, b: Array) -> Array:
    """The cross product of vectors [..., 3]. A product is rounded before another one is subtracted."""
    if a.shape != b.shape or a.shape[-1:] != (3,):
        raise ValueError(f"{list(a.shape)} and {list(b.shape)} have no cross product")
    a, b, dtype = _wide(a), _wide(b), a.dtype
    places = [(1, 2, 0), (2, 0, 1)]
    first, second = (a[..., places[i]] * b[..., places[1 - i]] for i in (0, 1))
    return cast_back(first - second, dtype)


# --- eigenvalues, singular values, least squares ----------------------------------------------------------------------


def _none(a: Array) -> Array:
    return np.empty(0, a.dtype)


@define("SelfAdjointEigV2")
def eigh(given: Attributes, a: Array) -> tuple[Array, Array]:
    """Eigenvalues from the smallest, eigenvectors as columns."""
    vectors, values = spectral.eigh(Backend, _wide(a))
    return cast_back(values, a.dtype), cast_back(vectors, a.dtype) if given["compute_v"] else _none(a)


@define("Svd")
def svd(given: Attributes, a: Array) -> tuple[Array, Array, Array]:
    """Singular values from the largest, and vectors as columns."""
    left, values, right = spectral.svd(Backend, _wide(a), given["full_matrices"])
    vectors = left, right.swapaxes(-1, -2)
    u, v = (cast_back(each, a.dtype) if given["compute_uv"] else _none(a) for each in vectors)
    return cast_back(values, a.dtype), u, v


@define("MatrixSolveLs")
def least_squares(given: Attributes, a: Array, b: Array, regularizer: Array) -> Array:
    """The least |a x - b|^2 + l |x|^2, where it is `fast`; else x of the least norm, without l."""
    if a.shape[-2] != b.shape[-2]:
        raise ValueError("Input matrix and rhs are incompatible.")
    if not a.size or not b.size:
        return np.zeros((*a.shape[:-2], a.shape[-1], b.shape[-1]), a.dtype)
    left, values, right = spectral.svd(Backend, _wide(a))
    least = values[..., :1] * (float(np.finfo(a.dtype).eps) * max(a.shape[-2:]))
    if given["fast"] and (values <= least).any() and not regularizer > 0:
        raise ValueError("Input matrix was rank deficient or ill-conditioned.")
    inverse = matrix_functions.inverse_values(Backend, values, least)
    if given["fast"]:
        inverse = values / (values * values + float(regularizer)) if regularizer > 0 else inverse
    return cast_back(matrix_functions.least_squares(Backend, left, inverse, right, _wide(b)), b.dtype)
