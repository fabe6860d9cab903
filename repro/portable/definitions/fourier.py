"""Fourier transforms, as products with tables of cosines and sines.

Operands of float32 have two slices, whatever the precision of other products: a spectrum spans many magnitudes. The sums
of a transform of up to LONGEST numbers are exact, and so is the sum of the parts of a complex product. Several axes are transformed one
after the other; the last pass has the factor of all.
"""

import math
from collections.abc import Sequence
from functools import partial

from repro.portable.definitions import products
from repro.portable.definitions.bits import is_float64
from repro.portable.definitions.grids import product, product_of_slices, scaled, sliced
from repro.portable.definitions.xp import Array, Backend
from repro.portable.numbers import tables
from repro.portable.numbers.constants import BITS

LONGEST = 4096
TOO_LONG = f"a transform of more than {LONGEST} numbers has no portable form"


Parts = tuple[Array, ...]
"""Real numbers, or real and imaginary parts, float32 or float64."""
FORWARD, INVERSE = -1, 1
"""Signs of the exponent."""


def fits(shape: Sequence[int], axes: Sequence[int], *more: int) -> bool:
    """True if transforms along these axes are not too long."""
    return max([*(shape[axis] for axis in axes), *more], default=0) <= LONGEST


def complex_to_complex(xp: Backend, parts: Parts, axes: Sequence[int], sign: int, factor: float = 1.0) -> Parts:
    for place, axis in enumerate(axes):
        last = place == len(axes) - 1
        parts = _along(xp, parts, axis, parts[0].shape[axis], sign, factor if last else 1.0)
    return parts


def real_to_complex(xp: Backend, x: Array, axes: Sequence[int], factor: float = 1.0, onesided: bool = True) -> Parts:
    """The last of the axes first; `onesided`: of that the first half, whose conjugates are the rest."""
    *others, last = axes
    columns = x.shape[last] // 2 + 1 if onesided else x.shape[last]
    parts = _along(xp, (x,), last, columns, FORWARD, 1.0 if others else factor)
    return complex_to_complex(xp, parts, others, FORWARD, factor)


def complex_to_real(xp: Backend, parts: Parts, axes: Sequence[int], length: int, factor: float = 1.0) -> Array:
    """The last of the axes last: of it the first length // 2 + 1 numbers count, and their conjugates are the others.

    Imaginary parts that real numbers do not have count for nothing.
    """
    *others, last = axes
    parts = complex_to_complex(xp, parts, others, INVERSE)
    rows, shape = zip(*(_rows(xp, each, last) for each in parts), strict=True)
    half = [each[:, : length // 2 + 1] for each in rows]
    columns = xp.counting(half[0], half[0].shape[1])
    once = xp.where(
        (columns > 0) & (columns * 2 < length), 1.0, 0.5
    )  # half as often as the others, which overflow so later
    weighted = tuple(each * xp.cast(once, each.dtype) for each in half)
    return _back(xp, transform(xp, weighted, length, length, INVERSE, 2.0 * factor)[0], shape[0], last)


def _along(xp: Backend, parts: Parts, axis: int, columns: int, sign: int, factor: float) -> Parts:
    rows, shapes = zip(*(_rows(xp, each, axis) for each in parts), strict=True)
    results = transform(xp, rows, parts[0].shape[axis], columns, sign, factor)
    return tuple(_back(xp, each, shapes[0], axis) for each in results)


def _rows(xp: Backend, x: Array, axis: int) -> tuple[Array, list[int]]:
    """Rows along an axis, and the shape of x with that axis at the end."""
    axis %= len(x.shape)
    order = (*(each for each in range(len(x.shape)) if each != axis), axis)
    moved = xp.permute(x, order)
    shape = [int(each) for each in moved.shape]
    return xp.reshape(moved, (math.prod(shape[:-1]), shape[-1])), shape


def _back(xp: Backend, rows: Array, shape: list[int], axis: int) -> Array:
    """Rows as an axis of an array of this shape, but for the length of the axis."""
    axis %= len(shape)
    others = range(len(shape) - 1)
    order = (*others[:axis], len(shape) - 1, *others[axis:])
    return xp.permute(xp.reshape(rows, (*shape[:-1], rows.shape[1])), order)


def transform(
    xp: Backend, parts: Parts, length: int, columns: int, sign: int, factor: float = 1.0
) -> tuple[Array, Array]:
    """The sums over j of x[j] exp(sign 2 pi i j k / length) for k < columns, times a factor: [M, J] -> [M, columns].

    `parts` are the real numbers, or real and imaginary parts, float32 or float64; the result has both. The two parts of a row have
    one grid.
    """
    x = xp.stack(parts, 1)
    count, rows = x.shape[1:]
    whole, *table = xp.tables(x, tables.fourier, length, rows, columns)
    if is_float64(x):
        y = products.matmul(xp, xp.reshape(x, (-1, rows)), whole)
        finish = partial(_times, factor)
    else:
        q, p = sliced(xp, x, (1, 2), 2)
        y = product_of_slices(partial(product, xp), [xp.reshape(each, (-1, rows)) for each in q], table)
        finish = partial(_rounded, xp, p[:, 0], factor)
    y = xp.reshape(y, (-1, count, 2, columns))
    real, imaginary = y[:, 0, 0], y[:, 0, 1] * float(sign)
    if count == 2:
        real, imaginary = real - y[:, 1, 1] * float(sign), imaginary + y[:, 1, 0]
    return finish(real), finish(imaginary)


def _times(factor: float, x: Array) -> Array:
    return x * factor


def _rounded(xp: Backend, p: Array, factor: float, total: Array) -> Array:
    return xp.r32(scaled(xp, total, 2 * BITS, p) * factor)
