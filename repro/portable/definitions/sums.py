"""Sums along axes: squares, variance, norms, scans."""

from repro.portable.definitions.grids import check_length, count, exact_sum, quantize
from repro.portable.definitions.xp import Array, Axes, Backend
from repro.portable.numbers.constants import SUM_BITS


def total(xp: Backend, x: Array, axes: Axes) -> Array:
    """The sum along the axes, float32, with axes of size 1."""
    return xp.r32(exact_sum(xp, x, axes))


def mean(xp: Backend, x: Array, axes: Axes) -> Array:
    """The mean along the axes, float32, with axes of size 1."""
    return xp.r32(exact_sum(xp, x, axes) * (1.0 / count(xp, x.shape, axes)))


def sum_of_squares(xp: Backend, x: Array, axes: Axes) -> Array:
    """The sum of squares along the axes, float64, with axes of size 1: each square has SUM_BITS bits on a grid."""
    check_length(count(xp, x.shape, axes), SUM_BITS)
    q, p = quantize(xp, x, axes, SUM_BITS)
    squares = xp.rint(xp.f64(q) * xp.f64(q) * 2.0**-SUM_BITS)
    unit = xp.f64(p)
    return xp.sum(squares, axes) * 2.0**-SUM_BITS * (unit * unit)


def norm(xp: Backend, x: Array, axes: Axes) -> Array:
    """The Euclidean norm along the axes, float32, with axes of size 1."""
    return xp.r32(xp.sqrt(sum_of_squares(xp, x, axes)))


def variance(xp: Backend, x: Array, axes: Axes, correction: float) -> tuple[Array, Array]:
    """The variance along the axes, with n - correction for n, and the mean, float32, with axes of size 1."""
    terms = count(xp, x.shape, axes)
    middle = mean(xp, x, axes)
    away = xp.r32(xp.f64(x) - xp.f64(middle))
    share = 1.0 / max(0.0, terms - correction) if terms > correction else xp.nan
    return xp.r32(sum_of_squares(xp, away, axes) * share), middle
