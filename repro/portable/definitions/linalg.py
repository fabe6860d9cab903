"""Factors of matrices, and linear systems: column by column, in float64, by operations of each element.

Arrays are float64 [..., rows, columns]. A step changes whole arrays under a mask, so that a compiled loop has fixed shapes and
every backend adds in one order.
"""

import math

from repro.portable.definitions import sums
from repro.portable.definitions.functions.logarithmic import log
from repro.portable.definitions.scans import product
from repro.portable.definitions.xp import Array, Backend


def total(xp: Backend, x: Array) -> Array:
    """The sum over the last axis but one, by halves: float64 sums of one order everywhere."""
    if not x.shape[-2]:
        return xp.sum(x, (len(x.shape) - 2,))[..., 0, :]
    while x.shape[-2] > 1:
        half = (x.shape[-2] + 1) // 2
        upper, lower = x[..., :half, :], x[..., half:, :]
        if lower.shape[-2] < half:
            lower = xp.pad(lower, [(0, 0)] * (len(x.shape) - 2) + [(0, 1), (0, 0)])
        x = upper + lower
    return x[..., 0, :]


def identity(xp: Backend, like: Array, rows: int, columns: int) -> Array:
    """Ones on the diagonal of [..., rows, columns], with the first axes of an array."""
    across = xp.counting(like, columns)
    ones = xp.where(xp.counting(like, rows)[:, None] == across, xp.f64(across) * 0.0 + 1.0, 0.0)
    return xp.broadcast_to(ones, (*like.shape[:-2], rows, columns))


def diagonal(xp: Backend, x: Array) -> Array:
    """[..., M, N] -> [..., min(M, N)]"""
    size = min(x.shape[-2:])
    places = xp.broadcast_to(xp.integer(xp.counting(x, size)), (*x.shape[:-2], size))
    return xp.take_along(x[..., :size, :size], places[..., None], -1)[..., 0]


# --- orthogonal factors -----------------------------------------------------------------------------------------------


def qr(xp: Backend, x: Array, full: bool = False) -> tuple[Array, Array]:
    """Q and R. Householder's reflections, J. ACM 5, 1958, with the signs of LAPACK.

    Of M rows and N columns, Q has min(M, N) columns, or M in full.
    """
    rows, columns = x.shape[-2:]
    size = rows if full else min(rows, columns)
    rest, vectors, factors = _triangle(xp, x)
    upper = xp.counting(x, rows)[:size, None] <= xp.counting(x, columns)
    q = reflected(xp, vectors, factors, identity(xp, x, rows, size))
    return q, xp.where(upper, rest[..., :size, :], 0.0)


def reflections(xp: Backend, x: Array) -> tuple[Array, Array]:
    """R [..., M, N], with the vectors of the reflections below its diagonal, and their factors [..., min(M, N)]."""
    rows, columns = x.shape[-2:]
    rest, vectors, factors = _triangle(xp, x)
    edges = [(0, 0)] * (len(x.shape) - 2)
    vectors = xp.pad(vectors, [*edges, (0, 0), (0, max(0, columns - vectors.shape[-1]))])[..., :columns]
    factors = xp.pad(factors, [*edges, (0, max(0, min(rows, columns) - factors.shape[-1]))])[..., : min(rows, columns)]
    below = xp.counting(x, rows)[:, None] > xp.counting(x, columns)
    return xp.where(below, vectors, rest), factors


def reflected(xp: Backend, vectors: Array, factors: Array, x: Array, transposed: bool = False) -> Array:
    """Q x [..., M, N], or Q^T x, by K reflections: vectors [..., M, K], of which what lies below the diagonal counts."""
    count, places = factors.shape[-1], xp.counting(x, vectors.shape[-2])

    def reflect(number: Array, x: Array) -> Array:
        step = number if transposed else count - 1 - number
        v = xp.at(vectors, step, -1)[..., 0]
        v = xp.where(places > step, v, xp.where(places == step, 1.0, v * 0.0))
        return _reflected(xp, x, v, xp.at(factors, step, -1))

    return xp.repeat(count, reflect, x)


def _triangle(xp: Backend, x: Array) -> tuple[Array, Array, Array]:
    """R, and the vectors and the factors of the reflections that make it: at least one, which may reflect nothing."""
    rows, columns = x.shape[-2:]
    steps = max(0, min(rows - 1, columns))
    places, across, kept = (xp.counting(x, n) for n in (rows, columns, max(steps, 1)))

    def column(step: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
        rest, vectors, factors = state
        v, factor = _reflection(xp, xp.at(rest, step, -1)[..., 0], places, step)
        rest = _reflected(xp, rest, v, factor)
        rest = xp.where((places[:, None] > step) & (across == step), 0.0, rest)
        return rest, xp.where(kept == step, v[..., None], vectors), xp.where(kept == step, factor, factors)

    none = xp.broadcast_to(xp.f64(kept) * 0.0, (*x.shape[:-2], rows, max(steps, 1)))
    return xp.repeat(steps, column, (x, none, total(xp, none)))


def _reflection(xp: Backend, x: Array, places: Array, step: Array) -> tuple[Array, Array]:
    """The vector v and the factor t of I - t v v^T, which takes x [..., M] from a place on to a multiple of that axis."""
    x = xp.where(places >= step, x, 0.0)
    scale = xp.maximum_of(abs(x))
    x = x / xp.where(scale == 0.0, 1.0, scale)
    norm = xp.sqrt(total(xp, (x * x)[..., None]))
    first = xp.at(x, step, -1)
    away = first + xp.where(first < 0.0, -norm, norm)
    below = xp.where(places > step, x, 0.0)
    v = xp.where(places == step, 1.0, below / xp.where(away == 0.0, 1.0, away))
    alone = xp.maximum_of(abs(below)) == 0.0
    return v, xp.where(alone, 0.0, 2.0 / total(xp, (v * v)[..., None]))


def _reflected(xp: Backend, x: Array, v: Array, factor: Array) -> Array:
    """[..., M, N] by a reflection."""
    return x - v[..., None] * (factor * total(xp, v[..., None] * x))[..., None, :]


# --- triangular factors -----------------------------------------------------------------------------------------------


def cholesky(xp: Backend, x: Array) -> Array:
    """L with L L^T = x, by the lower part of x; NaN from the first column on where x is not positive definite."""
    size = x.shape[-1]
    places = xp.counting(x, size)

    def column(step: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
        rest, factor = state
        line = xp.at(rest, step, -1)[..., 0]
        pivot = xp.at(line, step, -1)
        line = xp.where(places >= step, line / xp.sqrt(xp.where(pivot > 0.0, pivot, xp.nan)), 0.0)
        rest = rest - line[..., :, None] * line[..., None, :]
        return rest, xp.where(places == step, line[..., None], factor)

    lower = xp.where(places[:, None] >= places, x, xp.transpose(x))
    return xp.repeat(size, column, (lower, identity(xp, x, size, size) * 0.0))[1]


def only_definite(xp: Backend, factor: Array) -> Array:
    """A factor of Cholesky, with a lower part of NaN where it could not be finished."""
    places = xp.counting(factor, factor.shape[-1])
    last = factor[..., -1:, -1:]
    return xp.where((last != last) & (places[:, None] >= places), xp.nan, factor)


def lu(xp: Backend, x: Array) -> tuple[Array, Array, Array]:
    """L and U in one matrix, the row that was swapped with each, and the order of rows, int32: with pivots by size."""
    rows, columns = x.shape[-2:]
    steps = min(rows, columns)
    places, across = xp.integer(xp.counting(x, rows)), xp.counting(x, columns)

    def column(step: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
        x, pivots, order = state
        most = _first_of_largest(xp, xp.where(places >= step, abs(xp.at(x, step, -1)[..., 0]), -1.0))
        swapped = xp.where(places == step, most, xp.where(places == most, step, places))
        x = xp.take_along(x, swapped[..., None], -2)
        row, below = xp.at(x, step, -2), xp.at(x, step, -1)[..., 0]
        pivot = xp.at(below, step, -1)
        factors = xp.where(places > step, below / xp.where(pivot == 0.0, 1.0, pivot), 0.0)[..., None]
        here = (across == step) & (places > step)[:, None]
        x = xp.where(here, factors, x - factors * xp.where(across > step, row, 0.0))
        return x, xp.where(places[:steps] == step, most, pivots), xp.take_along(order, swapped, -1)

    order = xp.broadcast_to(places, (*x.shape[:-2], rows))
    return xp.repeat(steps, column, (x, order[..., :steps], order))


def _first_of_largest(xp: Backend, x: Array) -> Array:
    """[..., N] -> the place [..., 1], int32, of the first of the largest numbers, or of the first NaN."""
    size = x.shape[-1]
    largest = (x == xp.maximum_of(x)) | (x != x)
    behind = xp.where(largest, size - xp.f64(xp.counting(x, size)), 0.0)
    return xp.integer(size - xp.maximum_of(behind))


# --- systems ----------------------------------------------------------------------------------------------------------


def triangular_solve(xp: Backend, a: Array, b: Array, lower: bool, unit: bool = False) -> Array:
    """x [..., N, K] with a x = b, by substitution. `unit`: the diagonal is taken for ones."""
    size = a.shape[-1]
    places = xp.counting(a, size)

    def row(number: Array, rest: Array) -> Array:
        step = number if lower else size - 1 - number
        column = xp.at(a, step, -1)
        x = xp.at(rest, step, -2)
        x = x if unit else x / xp.at(column, step, -2)
        after = places > step if lower else places < step
        rest = xp.where(places[:, None] == step, x, rest)
        return xp.where(after[:, None], rest - column * x, rest)

    return xp.repeat(size, row, b)


def tridiagonal_solve(xp: Backend, below: Array, on: Array, above: Array, b: Array) -> Array:
    """x [..., N, K] with a x = b, with pivots by size. a has three diagonals [..., N]: before `below` begins, and where `above`
    ends, it has no column.
    """
    size = on.shape[-1]
    places = xp.counting(b, size)[:, None]
    none = xp.where(places < 0, b[..., :1], 0.0)
    right = xp.where(places < size - 1, above[..., None], 0.0)
    below = below[..., None]

    def eliminated(step: Array, rows: Array) -> Array:
        """Rows begin at their diagonal: three numbers, and those of b."""
        top, under, left = xp.at(rows, step, -2), xp.at(rows, step + 1, -2), xp.at(below, step + 1, -2)
        under = xp.concatenate([left, under[..., :2], under[..., 3:]], -1)
        larger = abs(left) > abs(top[..., :1])
        first, second = xp.where(larger, under, top), xp.where(larger, top, under)
        pivot = first[..., :1]
        second = second - second[..., :1] / xp.where(pivot == 0.0, 1.0, pivot) * first
        second = xp.concatenate([second[..., 1:3], second[..., :1] * 0.0, second[..., 3:]], -1)
        return xp.where(places == step, first, xp.where(places == step + 1, second, rows))

    rows = xp.repeat(size - 1, eliminated, xp.concatenate([on[..., None], right, none, b], -1))

    def solved(number: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
        x, following, after = state
        row = xp.at(rows, size - 1 - number, -2)
        here = (row[..., 3:] - row[..., 1:2] * following - row[..., 2:3] * after) / row[..., :1]
        return xp.where(places == size - 1 - number, here, x), here, following

    nothing = xp.where(places < 0, b, 0.0)
    return xp.repeat(size, solved, (nothing, nothing[..., :1, :], nothing[..., :1, :]))[0]


def cholesky_solve(xp: Backend, factor: Array, b: Array) -> Array:
    """x with L L^T x = b."""
    x = triangular_solve(xp, factor, b, lower=True)
    return triangular_solve(xp, xp.transpose(factor), x, lower=False)


def lu_solve(xp: Backend, factors: Array, order: Array, b: Array, transposed: bool = False) -> Array:
    """x with a x = b, or a^T x = b, of what lu() gave for a."""
    if transposed:
        across = xp.transpose(factors)
        x = triangular_solve(xp, across, b, lower=True)
        x = triangular_solve(xp, across, x, lower=False, unit=True)
        return xp.take_along(x, _undone(xp, order)[..., None], -2)
    x = triangular_solve(xp, factors, xp.take_along(b, order[..., None], -2), lower=True, unit=True)
    return triangular_solve(xp, factors, x, lower=False)


def swapped(xp: Backend, order: Array, pivots: Array) -> Array:
    """An order of rows, [..., N] int32, after each was swapped with the one that lu() names."""
    places = xp.integer(xp.counting(order, order.shape[-1]))

    def swap(step: Array, order: Array) -> Array:
        other = xp.at(pivots, step, -1)
        return xp.take_along(order, xp.where(places == step, other, xp.where(places == other, step, places)), -1)

    return xp.repeat(pivots.shape[-1], swap, order)


def _undone(xp: Backend, order: Array) -> Array:
    """The order that undoes one: [..., N], int32."""
    places = xp.counting(order, order.shape[-1])
    found = xp.where(order[..., None, :] == places[:, None], xp.f64(places), 0.0)
    return xp.integer(xp.sum(found, (len(order.shape),))[..., 0])


def determinant(xp: Backend, factors: Array, pivots: Array) -> Array:
    """The product of the pivots, of what lu() gave."""
    return _parity(xp, pivots) * product(xp, diagonal(xp, factors))


def log_determinant(xp: Backend, factors: Array, pivots: Array) -> tuple[Array, Array]:
    """The sign, and the logarithm of the size, of what lu() gave."""
    pivot = diagonal(xp, factors)
    signs = xp.where(pivot < 0.0, -1.0, xp.where(pivot == 0.0, 0.0, pivot / pivot))
    logarithms = sums.exact(xp, log(xp, abs(pivot)), (len(pivot.shape) - 1,))[..., 0]
    sign = _parity(xp, pivots) * product(xp, signs)
    return sign, xp.where(sign == 0.0, -math.inf, logarithms)


def _parity(xp: Backend, pivots: Array) -> Array:
    """1 for an even number of swaps, else -1: float64."""
    places = xp.counting(pivots, pivots.shape[-1])
    return product(xp, xp.where(pivots == places, xp.f64(places) * 0.0 + 1.0, -1.0))
