"""Factors of matrices."""

import numpy as np

from repro.portable.tensorflow.mode.backend import Array
from repro.portable.tensorflow.mode.dispatch import Attributes, define
from repro.portable.tensorflow.mode.types import narrowed, single


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
