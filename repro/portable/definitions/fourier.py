"""Fourier transforms, as products with tables of cosines and sines.

Operands of float32 have two slices, whatever the precision of other products: a spectrum spans many magnitudes. The sums
of a transform of up to LONGEST_ROW numbers are exact, and so is the sum of the parts of a complex product. Longer ones are made of
those: see _split and _by_chirps. Several axes are transformed one after the other; the last pass has the factor of all.
"""

import math
from collections.abc import Sequence
from functools import cache, partial

from repro.portable.definitions import products
from repro.portable.definitions.bits import is_float64
from repro.portable.definitions.complexes import times
from repro.portable.definitions.functions.trigonometric import sin_of_turns
from repro.portable.definitions.grids import product, product_of_slices, scaled, sliced
from repro.portable.definitions.sums import as_type_of
from repro.portable.definitions.xp import Array, Backend
from repro.portable.numbers import tables
from repro.portable.numbers.constants import BITS

LONGEST_ROW, LONGEST = 4096, 2**23
"""The longest transform that is one product, and the longest one."""
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
    if length > LONGEST_ROW:
        longer = _split if _divisor(length) > 1 else _by_chirps
        return tuple(each[:, :columns] for each in longer(xp, parts, length, sign, factor))
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


# --- transforms of more than LONGEST_ROW numbers ----------------------------------------------------------------------


@cache
def _divisor(length: int) -> int:
    """The largest divisor up to the root of a length, where both factors are short enough; 1 where there are none."""
    most = range(math.isqrt(length), 0, -1)
    return next(each for each in most if length % each == 0 and (each == 1 or length <= each * LONGEST_ROW))


def _split(xp: Backend, parts: Parts, length: int, sign: int, factor: float) -> Parts:
    """Transforms of n2 columns of n1 numbers, turned by exp(sign 2 pi i j2 k1 / length), and of n1 rows of n2 numbers.

    J. Cooley and J. Tukey, An Algorithm for the Machine Calculation of Complex Fourier Series (1965).
    """
    first = _divisor(length)
    second = length // first
    rows = parts[0].shape[0]
    parts = tuple(xp.pad(each, [(0, 0), (0, length - each.shape[1])]) for each in parts)
    columns = (_turned(xp, each, (rows, first, second)) for each in parts)
    z = transform(xp, tuple(columns), first, first, sign)
    place = xp.f64(xp.counting(z[0], second))[:, None] * xp.f64(xp.counting(z[0], first))[None]
    z = _times_root(xp, tuple(xp.reshape(each, (rows, length)) for each in z), place, length, sign)
    z = transform(xp, tuple(_turned(xp, each, (rows, second, first)) for each in z), second, second, sign, factor)
    return tuple(xp.reshape(_turned(xp, each, (rows, first, second)), (rows, length)) for each in z)


def _turned(xp: Backend, x: Array, shape: tuple[int, int, int]) -> Array:
    """Numbers of this shape with the last two axes exchanged: a row for each of the last one."""
    return xp.reshape(xp.transpose(xp.reshape(x, shape)), (shape[0] * shape[2], shape[1]))


def _times_root(xp: Backend, z: Parts, place: Array, length: int, sign: int) -> Parts:
    """Rows of numbers times exp(sign 2 pi i place / length), each part rounded to its type."""
    turns = xp.reshape(place, (1, -1)) * (2.0 / length)
    root = _cos_of_turns(xp, turns), sin_of_turns(xp, turns) * float(sign)
    rounded = times(xp, tuple(map(xp.f64, z)), root)
    return tuple(as_type_of(xp, each, z[0]) for each in rounded)


def _cos_of_turns(xp: Backend, turns: Array) -> Array:
    """cos(pi x), of any x."""
    return sin_of_turns(xp, 0.5 - turns)


def _by_chirps(xp: Backend, parts: Parts, length: int, sign: int, factor: float) -> Parts:
    """A convolution with exp(-sign pi i j^2 / length), by transforms of a power of two numbers.

    L. Bluestein, A Linear Filtering Approach to the Computation of Discrete Fourier Transform (1970).
    """
    padded = 2 ** (2 * length - 2).bit_length()
    steps = xp.f64(xp.counting(parts[0], length))
    square = steps * steps
    place = square - xp.floor(square * (0.5 / length)) * (2.0 * length)
    kept = parts[0].shape[1]
    z = parts if len(parts) == 2 else (*parts, parts[0] * 0.0)
    z = _times_root(xp, z, place[:kept], 2 * length, sign)
    one = xp.cast(xp.reshape(steps * 0.0 + 1.0, (1, -1)), z[0].dtype)
    chirp = _times_root(xp, (one, one * 0.0), place, 2 * length, -sign)
    z = transform(xp, tuple(xp.pad(each, [(0, 0), (0, padded - kept)]) for each in z), padded, padded, FORWARD)
    gap = [(0, 0), (0, padded - 2 * length + 1)]
    whole = tuple(
        xp.concatenate([xp.pad(each, gap), xp.take(each[0], length - 1 - xp.counting(each, length - 1))[None]], -1)
        for each in chirp
    )
    whole = transform(xp, whole, padded, padded, FORWARD)
    product = tuple(as_type_of(xp, each, z[0]) for each in times(xp, tuple(map(xp.f64, z)), tuple(map(xp.f64, whole))))
    z = transform(xp, product, padded, padded, INVERSE, 1.0 / padded)
    z = _times_root(xp, tuple(each[:, :length] for each in z), place, 2 * length, sign)
    return tuple(as_type_of(xp, xp.f64(each) * factor, each) for each in z)
