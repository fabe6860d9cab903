"""TensorFlow's operations of linear algebra: signatures of the definitions."""

import numpy as np

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
