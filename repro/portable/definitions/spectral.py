"""Eigenvalues and singular values, in float64, by rotations of pairs of columns.

C. Jacobi, 1846, in turns of disjoint pairs; singular values as M. Hestenes, J. SIAM 6, 1958. A pair that is orthogonal
already stays as it is, so what has converged no longer changes.
"""

from collections.abc import Callable
from functools import partial

from repro.portable.definitions import linalg
from repro.portable.definitions.bits import exponent, pow2_f64
from repro.portable.definitions.linalg import total
from repro.portable.definitions.xp import Array, Backend
from repro.portable.numbers import tables

SMALL = 2.0**-53
"""Columns are orthogonal where their product is less than this share of their sizes."""
MOST_SWEEPS = 40
LARGEST = 1000
"""The largest exponent of a scale: its reciprocal is a number of float64, too."""

Matrices = tuple[Array, ...]
Pairs = tuple[Array, Array, Array, Array]
"""A turn: see repro.portable.numbers.tables.turns."""


def _swept(xp: Backend, x: Matrices, turn: Callable[[Matrices, Pairs], tuple[Matrices, Array]]) -> Matrices:
    """The matrices after the last sweep over all pairs of columns that changes them."""
    size = x[0].shape[-1]
    if size < 2:
        return x
    every = xp.tables(x[0], tables.turns, size)

    def one(number: Array, state: tuple[Matrices, Array]) -> tuple[Matrices, Array]:
        first, second, order, partners = (xp.at(each, number, -2)[0] for each in every)
        matrices, turned = turn(state[0], (first, second, order, partners))
        return matrices, state[1] + xp.reshape(xp.sum(xp.where(turned, 1.0, xp.f64(turned)), _axes(turned)), ())

    def sweep(state: tuple[Matrices, Array, Array]) -> tuple[Matrices, Array, Array]:
        matrices, turned = xp.repeat(size - 1, one, (state[0], state[1] * 0.0))
        return matrices, turned, state[2] + 1.0

    none = xp.f64(xp.counting(x[0], 1))[0]
    return xp.repeat_while(lambda state: (state[1] > 0) & (state[2] < MOST_SWEEPS), sweep, (x, none + 1.0, none))[0]


def _axes(x: Array) -> tuple[int, ...]:
    return tuple(range(len(x.shape)))


def _chosen(xp: Backend, x: Array, places: Array, axis: int = -1) -> Array:
    """Columns or rows of [..., M, N] by their places [K]."""
    index = xp.reshape(places, (*(1,) * (len(x.shape) - 2), *((1, -1) if axis == -1 else (-1, 1))))
    return xp.take_along(x, index, axis)


def _rotation(xp: Backend, first: Array, second: Array, product: Array, turned: Array) -> tuple[Array, Array]:
    """Cosine and sine of the angle that makes the product of two columns 0, by the products with themselves."""
    angle = (second - first) / xp.where(turned, 2.0 * product, 1.0)
    tangent = xp.where(angle < 0.0, -1.0, angle * 0.0 + 1.0) / (abs(angle) + xp.sqrt(angle * angle + 1.0))
    tangent = xp.where(turned, tangent, 0.0)
    cosine = 1.0 / xp.sqrt(tangent * tangent + 1.0)
    return cosine, tangent * cosine


def _rotated(xp: Backend, x: Array, pairs: Pairs, cosine: Array, sine: Array) -> Array:
    """Pairs of columns, [..., M, N]; the angles [..., pairs]."""
    first, second = _chosen(xp, x, pairs[0]), _chosen(xp, x, pairs[1])
    cosine, sine = cosine[..., None, :], sine[..., None, :]
    return _chosen(xp, xp.concatenate([cosine * first - sine * second, sine * first + cosine * second], -1), pairs[2])


def _finite(xp: Backend, x: Array) -> Array:
    """True if all numbers of a matrix are finite: [..., 1, 1]"""
    return xp.maximum_of(xp.transpose(xp.maximum_of(abs(x)))) < xp.inf


def _scaled(xp: Backend, x: Array) -> tuple[Array, Array]:
    """Matrices by a power of two, [..., 1, 1], that leaves the largest number at about 1: then squares are numbers of float64."""
    most = xp.maximum_of(xp.transpose(xp.maximum_of(abs(x))))
    e = xp.clip(exponent(xp, most), -LARGEST, LARGEST)
    return x * pow2_f64(xp, -e), pow2_f64(xp, e)


def _even(xp: Backend, x: Array, axes: int) -> Array:
    """With a column of zeros where their number is odd, or with a row as well."""
    more = (0, x.shape[-1] % 2)
    return xp.pad(x, [*[(0, 0)] * (len(x.shape) - 2), more if axes == 2 else (0, 0), more])


def eigh(xp: Backend, x: Array, lower: bool = True) -> tuple[Array, Array]:
    """[..., N, N], of which one triangle counts -> eigenvectors as columns, eigenvalues from the smallest."""
    size = x.shape[-1]
    if not size:
        return x, total(xp, x)
    finite, places = _finite(xp, x), xp.counting(x, size)
    x = xp.where(finite, x, 0.0)
    part = xp.where(places[:, None] > places, x if lower else xp.transpose(x), 0.0)
    x = _even(xp, part + xp.transpose(part) + xp.where(places[:, None] == places, x, 0.0), 2)
    x, vectors = _swept(xp, (x, linalg.identity(xp, x, *x.shape[-2:])), partial(_eigh_turn, xp))
    values = linalg.diagonal(xp, x)[..., :size]
    order = xp.argsort(values)
    vectors = xp.take_along(vectors[..., :size, :size], order[..., None, :], -1)
    values = xp.take_along(values, order, -1)
    return xp.where(finite, vectors, xp.nan), xp.where(finite[..., 0], values, xp.nan)


def _eigh_turn(xp: Backend, matrices: Matrices, pairs: Pairs) -> tuple[Matrices, Array]:
    x, vectors = matrices
    diagonal = linalg.diagonal(xp, x)[..., None, :]
    first, second = (_chosen(xp, diagonal, each)[..., 0, :] for each in pairs[:2])
    product = _met(xp, x, pairs)
    turned = abs(product) > SMALL * xp.sqrt(abs(first)) * xp.sqrt(abs(second))
    turned = turned & (abs(product) > SMALL * SMALL * xp.maximum_of(xp.transpose(xp.maximum_of(abs(x))))[..., 0])
    cosine, sine = _rotation(xp, first, second, product, turned)
    x = _rotated(xp, x, pairs, cosine, sine)
    x = xp.transpose(_rotated(xp, xp.transpose(x), pairs, cosine, sine))
    product = xp.where(turned, 0.0, _met(xp, x, pairs))[..., None, :]
    product = xp.transpose(_chosen(xp, xp.concatenate([product, product], -1), pairs[2]))
    x = xp.where(pairs[3][:, None] == xp.counting(x, x.shape[-1]), product, x)
    return (x, _rotated(xp, vectors, pairs, cosine, sine)), turned


def _met(xp: Backend, x: Array, pairs: Pairs) -> Array:
    """[..., N, N] -> the elements of the pairs' first rows and second columns, [..., pairs]"""
    return linalg.diagonal(xp, _chosen(xp, _chosen(xp, x, pairs[0], -2), pairs[1]))


def svd(xp: Backend, x: Array, full: bool = False) -> tuple[Array, Array, Array]:
    """[..., M, N] -> vectors as columns, singular values from the largest, and vectors as rows."""
    if x.shape[-2] < x.shape[-1]:
        left, values, right = svd(xp, xp.transpose(x), full)
        return xp.transpose(right), values, xp.transpose(left)
    size = x.shape[-1]
    if not size:
        return linalg.identity(xp, x, x.shape[-2], x.shape[-2] if full else 0), total(xp, x), xp.transpose(x)[..., :0]
    finite = _finite(xp, x)
    x, unit = _scaled(xp, xp.where(finite, x, 0.0))
    x = _even(xp, x, 1)
    whole = x.shape[-1]
    x, right = _swept(xp, (x, linalg.identity(xp, x, whole, whole)), partial(_svd_turn, xp))
    x, right = x[..., :size], right[..., :size, :size]
    values = xp.sqrt(total(xp, x * x))
    order = xp.argsort(-values)
    x, right = (xp.take_along(each, order[..., None, :], -1) for each in (x, right))
    left, triangle = linalg.qr(xp, x, full)
    signs = xp.where(linalg.diagonal(xp, triangle) < 0.0, -1.0, values * 0.0 + 1.0)
    if left.shape[-1] > size:
        signs = xp.pad(signs, [*[(0, 0)] * (len(signs.shape) - 1), (0, left.shape[-1] - size)], 1.0)
    left = xp.where(finite, left * signs[..., None, :], xp.nan)
    values = xp.where(finite[..., 0], xp.take_along(values, order, -1) * unit[..., 0], xp.nan)
    return left, values, xp.where(finite, xp.transpose(right), xp.nan)


def _svd_turn(xp: Backend, matrices: Matrices, pairs: Pairs) -> tuple[Matrices, Array]:
    first, second = _chosen(xp, matrices[0], pairs[0]), _chosen(xp, matrices[0], pairs[1])
    sizes, others, product = (total(xp, each) for each in (first * first, second * second, first * second))
    turned = abs(product) > SMALL * xp.sqrt(sizes) * xp.sqrt(others)
    cosine, sine = _rotation(xp, sizes, others, product, turned)
    return tuple(_rotated(xp, each, pairs, cosine, sine) for each in matrices), turned
