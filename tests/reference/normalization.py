"""Reference: normalization of rows and batches."""

import numpy as np

from reference.arithmetic import Array, exact_dot, exact_mean, f64, grid, length, r32
from repro.portable.numbers.constants import BITS, MEAN_BITS


def normalize(x: Array, axes: tuple[int, ...], eps: float, center: bool, batch: bool) -> tuple[Array, ...]:
    """(x - mean) / sqrt(variance + eps), mean and variance; without `center`, as if the mean were 0, and none is given.

    `batch` says that other ranks have samples, too, and matters to them alone.
    """
    y, mean, variance, _ = _normalized(x, axes, eps, center)
    return (y, mean, variance) if center else (y, variance)


def _normalized(x: Array, axes: tuple[int, ...], eps: float, center: bool):
    share = 1.0 / length(x, axes)
    if center:  # the mean is rounded to the grid of x, and taken away there: integers below 2^24
        q, p = grid(x, axes, MEAN_BITS)
        unit, middle = p * 2.0**-MEAN_BITS, np.rint(q.sum(axes, keepdims=True) * share)
        away, mean = q - middle, r32(middle * unit)
    else:
        away, unit, mean = f64(x), f64(1.0), None
    q, p = grid(away, axes)
    variance = r32((q * q).sum(axes, keepdims=True) * (p * unit * 2.0**-BITS) ** 2 * share)
    root = r32(np.sqrt(f64(variance) + eps))
    inverse = r32(1.0 / f64(root))
    return r32(away * (unit * f64(inverse))), mean, variance, inverse


def normalize_gradients(x: Array, gradient: Array, axes: tuple[int, ...], eps: float, center: bool, batch: bool):
    """(g - mean(g) - y mean(g y)) / root; without `center`, without mean(g)."""
    y, _, _, inverse = _normalized(x, axes, eps, center)
    along = r32(exact_dot(gradient, y, axes) * (1.0 / length(x, axes)))
    rest = f64(gradient) - (f64(exact_mean(gradient, axes)) if center else 0.0)
    return (r32((rest - f64(y) * f64(along)) * f64(inverse)),)


def normalize_by(x: Array, mean: Array, variance: Array, eps: float) -> Array:
    """(x - mean) / sqrt(variance + eps): [..., C], [C], [C]."""
    return r32(f64(r32(f64(x) - f64(mean))) * f64(_inverse(variance, eps)))


def normalize_by_gradients(x: Array, mean: Array, variance: Array, gradient: Array, eps: float):
    return r32(f64(gradient) * f64(_inverse(variance, eps))), None, None


def _inverse(variance: Array, eps: float) -> Array:
    return r32(1.0 / f64(r32(np.sqrt(f64(variance) + eps))))
