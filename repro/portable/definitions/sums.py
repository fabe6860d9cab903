"""Sums along axes, of float32 or float64: squares, variance, norms, and integers for sums of any kind."""

import math
from collections.abc import Callable

from repro.portable.definitions import doubles
from repro.portable.definitions.bits import is_float64
from repro.portable.definitions.grids import check_length, count, exact_sum, quantize
from repro.portable.definitions.xp import Array, Axes, Backend
from repro.portable.numbers.constants import SUM_BITS

Slices = tuple[list[Array], Array, int]
"""Integers, float64, a slice after the other; the unit of the first, with axes of size 1; and the bits of a slice."""


def sliced(xp: Backend, x: Array, axes: Axes, numbers: int = 1) -> Slices:
    """Integers whose sums along the axes are exact. `numbers`: 2 for twice the slices of float64, see doubles.slices."""
    if is_float64(x):
        bits = doubles.sum_bits(count(xp, x.shape, axes))
        return *doubles.slices(xp, x, axes, bits, numbers), bits
    q, p = quantize(xp, x, axes, SUM_BITS)
    return [xp.f64(q)], xp.f64(p) * 2.0**-SUM_BITS, SUM_BITS


def joined(slices: Slices, add: Callable[[Array], Array]) -> Array:
    """The sums, float64, that a function makes of integers: it adds them, and does nothing else."""
    parts, unit, bits = slices
    return doubles.joined([add(part) for part in parts], bits) * unit


def exact(xp: Backend, x: Array, axes: Axes) -> Array:
    """The sum along the axes, float64, with axes of size 1."""
    if 0 in tuple(x.shape):
        return xp.sum(x, axes)
    if not is_float64(x):
        return exact_sum(xp, x, axes)
    return joined(sliced(xp, x, axes), lambda part: xp.sum(part, axes))


def as_type_of(xp: Backend, y: Array, x: Array) -> Array:
    """float64 numbers, rounded to the type of x."""
    return y if is_float64(x) else xp.r32(y)


def total(xp: Backend, x: Array, axes: Axes) -> Array:
    """The sum along the axes, of the type of x, with axes of size 1."""
    return as_type_of(xp, exact(xp, x, axes), x)


def mean(xp: Backend, x: Array, axes: Axes) -> Array:
    """The mean along the axes, of the type of x, with axes of size 1; NaN of no numbers."""
    terms = count(xp, x.shape, axes)
    return as_type_of(xp, exact(xp, x, axes) * (1.0 / terms if terms else math.nan), x)


def sum_of_squares(xp: Backend, x: Array, axes: Axes) -> Array:
    """The sum of squares along the axes, float64, with axes of size 1: each square of float32 has SUM_BITS bits on a grid."""
    if is_float64(x) or 0 in tuple(x.shape):
        return exact(xp, x * x, axes)
    check_length(count(xp, x.shape, axes), SUM_BITS)
    q, p = quantize(xp, x, axes, SUM_BITS)
    squares = xp.rint(xp.f64(q) * xp.f64(q) * 2.0**-SUM_BITS)
    unit = xp.f64(p)
    return xp.sum(squares, axes) * 2.0**-SUM_BITS * (unit * unit)


def norm(xp: Backend, x: Array, axes: Axes) -> Array:
    """The Euclidean norm along the axes, of the type of x, with axes of size 1."""
    return as_type_of(xp, xp.sqrt(sum_of_squares(xp, x, axes)), x)


def variance(xp: Backend, x: Array, axes: Axes, correction: float) -> tuple[Array, Array]:
    """The variance along the axes, with n - correction for n, and the mean, of the type of x, with axes of size 1."""
    terms = count(xp, x.shape, axes)
    middle = mean(xp, x, axes)
    away = as_type_of(xp, xp.f64(x) - xp.f64(middle), x)
    share = 1.0 / (terms - correction) if terms > correction else xp.nan
    return as_type_of(xp, sum_of_squares(xp, away, axes) * share, x), middle
