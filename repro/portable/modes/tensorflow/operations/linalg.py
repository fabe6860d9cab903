"""Factors of matrices, and linear systems, in float64: column by column, by operations of each element."""

import numpy as np

from repro.portable.backends.numpy import Array, Backend
from repro.portable.definitions.functions.logarithmic import log
from repro.portable.modes.tensorflow.dispatcher.dispatch import Attributes, define
from repro.portable.modes.tensorflow.dispatcher.types import narrowed, single


@define("Qr")
def qr(given: Attributes, a: Array) -> tuple[Array, Array]:
    """[..., M, N] -> Q R by A. Householder's reflections, J. ACM 5, 1958, in float64, with the signs of LAPACK."""
    rest = single(a).astype(np.float64)
    rows, columns = rest.shape[-2:]
    reflections = []
    for step in range(min(rows - 1, columns)):
        reflection = _reflection(rest[..., step:, step])
        rest[..., step:, step:] = _reflected(rest[..., step:, step:], *reflection)
        rest[..., step + 1 :, step] = 0.0
        reflections.append(reflection)
    size = rows if given["full_matrices"] else min(rows, columns)
    q = np.broadcast_to(np.eye(rows, size), (*a.shape[:-2], rows, size)).copy()
    for step in range(len(reflections) - 1, -1, -1):
        q[..., step:, :] = _reflected(q[..., step:, :], *reflections[step])
    return narrowed(q, a.dtype), narrowed(np.triu(rest[..., :size, :]), a.dtype)


def _reflection(x: Array) -> tuple[Array, Array]:
    """The vector v and the factor t of I - t v v^T, which takes x [..., K] to a multiple of the first axis."""
    scale = np.abs(x).max(-1, keepdims=True)
    x = x / np.where(scale == 0, 1.0, scale)
    norm = np.sqrt(_total((x * x)[..., None]))
    first = x[..., :1]
    away = first + np.where(first < 0, -norm, norm)
    v = np.concatenate((np.ones_like(first), x[..., 1:] / np.where(away == 0, 1.0, away)), -1)
    alone = np.abs(x[..., 1:]).max(-1, keepdims=True, initial=0.0) == 0
    return v, np.where(alone, 0.0, 2.0 / _total((v * v)[..., None]))


def _reflected(x: Array, v: Array, factor: Array) -> Array:
    """[..., K, N]"""
    return x - v[..., None] * (factor * _total(v[..., None] * x))[..., None, :]


def _total(x: Array) -> Array:
    """The sum over the last axis but one, by halves: float64 sums of one order everywhere."""
    while x.shape[-2] > 1:
        half = (x.shape[-2] + 1) // 2
        upper, lower = x[..., :half, :].copy(), x[..., half:, :]
        upper[..., : lower.shape[-2], :] += lower
        x = upper
    return x[..., 0, :]


# --- linear systems ---------------------------------------------------------------------------------------------------


@define("Cholesky")
def cholesky(given: Attributes, a: Array) -> Array:
    """[..., N, N] -> L with L L^T = A, of its lower part; NaN where A is not positive definite."""
    rest, found = np.tril(single(a).astype(np.float64)), np.zeros(a.shape)
    for step in range(a.shape[-1]):
        column = rest[..., step:, step] / np.sqrt(rest[..., step, step])[..., None]
        found[..., step:, step] = column
        rest[..., step:, step:] -= column[..., :, None] * column[..., None, :]
    failed = np.isnan(found).any((-1, -2), keepdims=True)
    return narrowed(np.where(failed & np.tri(a.shape[-1], dtype=bool), np.nan, found), a.dtype)


@define("MatrixTriangularSolve")
def triangular_solve(given: Attributes, a: Array, b: Array) -> Array:
    """[..., N, N], [..., N, K] -> x with A x = b, or A^T x = b."""
    wide, lower = single(a).astype(np.float64), given["lower"]
    wide = np.tril(wide) if lower else np.triu(wide)
    if given["adjoint"]:
        wide, lower = wide.swapaxes(-1, -2), not lower
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    x = np.broadcast_to(single(b).astype(np.float64), (*batch, *b.shape[-2:]))
    return narrowed(_substituted(wide, x, lower), b.dtype)


def _substituted(a: Array, b: Array, lower: bool) -> Array:
    x, size = b.copy(), a.shape[-1]
    for step in range(size) if lower else range(size - 1, -1, -1):
        x[..., step, :] /= a[..., step, step, None]
        after = slice(step + 1, None) if lower else slice(0, step)
        x[..., after, :] -= a[..., after, step, None] * x[..., step, None, :]
    return x


def _eliminated(a: Array, b: Array) -> tuple[Array, Array, Array]:
    """U, and b by the same steps, with pivots by size; the sign of the swaps."""
    a, b = np.array(a), np.array(b)
    sign = np.ones(a.shape[:-2])
    for step in range(a.shape[-1]):
        most = np.abs(a[..., step:, step]).argmax(-1)[..., None, None] + step
        for each in (a, b):
            row = each[..., step : step + 1, :].copy()
            each[..., step : step + 1, :] = np.take_along_axis(each, most, -2)
            np.put_along_axis(each, most, row, -2)
        sign = np.where(most[..., 0, 0] == step, sign, -sign)
        pivot = a[..., step, step, None]
        factors = (a[..., step + 1 :, step] / np.where(pivot == 0, 1.0, pivot))[..., None]
        a[..., step + 1 :, :] -= factors * a[..., step, None, :]
        b[..., step + 1 :, :] -= factors * b[..., step, None, :]
    return a, b, sign


def _solved(a: Array, b: Array, adjoint: bool) -> Array:
    wide = single(a).astype(np.float64)
    upper, x, _ = _eliminated(wide.swapaxes(-1, -2) if adjoint else wide, b)
    if (_diagonal(upper) == 0).any():
        raise ValueError("Input matrix is not invertible.")
    return narrowed(_substituted(upper, x, lower=False), a.dtype)


def _diagonal(a: Array) -> Array:
    return a.diagonal(axis1=-2, axis2=-1)


@define("MatrixSolve")
def solve(given: Attributes, a: Array, b: Array) -> Array:
    """[..., N, N], [..., N, K] -> x with A x = b, by Gaussian elimination."""
    return _solved(a, single(b).astype(np.float64), given["adjoint"])


@define("MatrixInverse")
def inverse(given: Attributes, a: Array) -> Array:
    return _solved(a, np.broadcast_to(np.eye(a.shape[-1]), a.shape), given["adjoint"])


@define("MatrixDeterminant")
def determinant(given: Attributes, a: Array) -> Array:
    """The product of the pivots."""
    upper, _, found = _eliminated(single(a).astype(np.float64), np.zeros((*a.shape[:-1], 0)))
    for pivot in np.moveaxis(_diagonal(upper), -1, 0):
        found = found * pivot
    return narrowed(found, a.dtype)


@define("LogMatrixDeterminant")
def log_determinant(given: Attributes, a: Array) -> tuple[Array, Array]:
    """The sign, and the logarithm of the size: a sum of those of the pivots."""
    upper, _, sign = _eliminated(single(a).astype(np.float64), np.zeros((*a.shape[:-1], 0)))
    found = np.zeros(a.shape[:-2])
    for pivot in np.moveaxis(_diagonal(upper), -1, 0):
        sign, found = sign * np.sign(pivot), found + log(Backend, np.abs(pivot))
    return narrowed(sign, a.dtype), narrowed(found, a.dtype)
