"""Reference: rounding, grids, exact sums."""

import math
from collections.abc import Callable

import numpy as np

from repro.portable.numbers.constants import BITS, MEAN_BITS, SMALLEST, SUM_BITS, TINY

Array = np.ndarray
Pair = tuple[int, int]


def r32(x) -> Array:
    """Rounded once to float32; then magnitudes below 2^-100 become +0."""
    with np.errstate(over="ignore", under="ignore"):
        rounded = np.asarray(x, np.float64).astype(np.float32)
    return np.where(np.abs(rounded) < np.float32(TINY), np.float32(0), rounded)


def f64(x) -> Array:
    return np.asarray(x, np.float64)


def grid(x: Array, axes: tuple[int, ...], bits: int = BITS) -> tuple[Array, Array]:
    """Integers q, int64, and powers of two p = 2^e, float64, with x close to q p 2^-bits: a p for each group.

    Along the axes lies a group. Its e is the least integer that is -100 or more and has every |x| < 2^e; q is x times
    2^(bits - e), rounded half to even. If a number of the group is not below 2^127, or NaN, then p is NaN, and so will
    be whatever is computed with it.
    """
    largest = np.abs(f64(x)).max(axes, keepdims=True)
    counts = largest < 2.0**127
    e = np.frexp(np.where(counts, largest, 1.0))[1]  # largest = f 2^e with 1/2 <= f < 1
    e = np.where(largest > 0, np.maximum(e, SMALLEST), SMALLEST)
    q = np.rint(np.ldexp(np.where(counts, x, 0.0), bits - e)).astype(np.int64)
    return q, np.where(counts, np.ldexp(1.0, e), np.nan)


def halves(x: Array, axes: tuple[int, ...]) -> tuple[tuple[Array, Array], Array]:
    """Two slices of BITS bits, int64, and p: as of grid, and what that leaves, on a grid that is 2^BITS times finer."""
    q, p = grid(x, axes)
    counts = ~np.isnan(p)
    scaled = np.where(counts, f64(x), 0.0) * (2.0**BITS / np.where(counts, p, 1.0))
    return (q, np.rint((scaled - q) * 2.0**BITS).astype(np.int64)), p


def product_of_halves(multiply: Callable[[Array, Array], Array], a: tuple[Array, Array], b: tuple[Array, Array]):
    """Three of the four products of two slices each, in the unit of the first ones: sums of int64, added in float64."""
    return multiply(a[0], b[0]) + (multiply(a[0], b[1]) + multiply(a[1], b[0])) * 2.0**-BITS


def exact_sum(x: Array, axes: tuple[int, ...], bits: int = SUM_BITS) -> Array:
    """The sum of each group on its grid, float64."""
    q, p = grid(x, axes, bits)
    return q.sum(axes, keepdims=True) * (p * 2.0**-bits)


def sum_by_index(x: Array, index: Array, rows: int) -> Array:
    """Rows [M, C] added up by their index, float64 [rows, C]: what is added to one row has one grid."""
    result = np.zeros((rows, x.shape[1]))
    for row in np.unique(index):
        q, p = grid(x[index == row], (0, 1), SUM_BITS)
        result[row] = q.sum(0) * (p[0] * 2.0**-SUM_BITS)
    return result


def cumulative_sum(x: Array) -> Array:
    """Sums of the first numbers of the last axis, float64: in order within 8 numbers, after those of what is before."""
    x = f64(x)
    sums, ends = np.empty_like(x), np.empty((*x.shape[:-1], x.shape[-1] // 8))
    for place in range(x.shape[-1]):
        sums[..., place] = x[..., place] if place % 8 == 0 else sums[..., place - 1] + x[..., place]
        if place % 8 == 7:
            ends[..., place // 8] = sums[..., place]
    if ends.shape[-1]:
        before = cumulative_sum(ends)
        for place in range(8, x.shape[-1]):
            sums[..., place] = before[..., place // 8 - 1] + sums[..., place]
    return sums


def exact_mean(x: Array, axes: tuple[int, ...]) -> Array:
    """Times the reciprocal of how many there are, rounded to float64: no division."""
    return r32(exact_sum(x, axes, MEAN_BITS) * (1.0 / length(x, axes)))


def exact_dot(a: Array, b: Array, axes: tuple[int, ...]) -> Array:
    """The sum of a b of each group, both on their grids, float64."""
    (q, p), (r, s) = grid(a, axes), grid(b, axes)
    return (q * r).sum(axes, keepdims=True) * (p * s * 2.0 ** (-2 * BITS))


def length(x: Array, axes: tuple[int, ...]) -> int:
    return math.prod(x.shape[axis] for axis in axes)


def swap(x: Array) -> Array:
    """Rows and columns of matrices."""
    return np.swapaxes(x, -1, -2)
