"""Sums of numbers that meet at targets, each on a grid of its own.

A target is a number, or a row of them, to which numbers are added. So a sum depends on what is added to its target
alone, whatever else a call adds. Frameworks find the targets: their own kernels take the largest exponents, and add
integers, in any order.
"""

from collections.abc import Callable

from repro.portable.definitions import bits, doubles
from repro.portable.definitions.bits import is_float64, pow2_f32
from repro.portable.definitions.grids import check_length
from repro.portable.definitions.xp import Array, Axes, Backend
from repro.portable.numbers.constants import SUM_BITS


def magnitudes(xp: Backend, x: Array, axes: Axes) -> Array:
    """The largest magnitude along the axes, of rows, with axes of size 1; without axes of each number."""
    pattern = xp.pattern(x) & (0x7FFFFFFFFFFFFFFF if is_float64(x) else 0x7FFFFFFF)
    return xp.number(xp.largest(pattern, axes) if axes else pattern)


def exponents(xp: Backend, most: Array) -> Array:
    """The exponents, int32, of the grids of targets to which numbers of up to these magnitudes are added."""
    return doubles.exponent_above(xp, most, ()) if is_float64(most) else bits.exponent_above(xp, most, ())


def slices(xp: Backend, x: Array, e: Array, terms: int) -> list[Array]:
    """Integers, float64, a slice after the other, of numbers on grids of these exponents: sums of `terms` are exact."""
    if is_float64(x):
        return doubles.cut(xp, x, e, doubles.sum_bits(terms), numbers=2)
    return [xp.f64(xp.rint(x * pow2_f32(xp, SUM_BITS - e)))]


def joined(xp: Backend, sums: list[Array], e: Array, terms: int) -> Array:
    """The sums, float64, of the sums of slices and of the exponents of targets, which broadcast."""
    if len(sums) > 1:
        size = doubles.sum_bits(terms)
        return doubles.joined(sums, size) * doubles.unit(xp, e, size)
    unit = xp.where(e > 127, xp.nan, pow2_f32(xp, e))
    return sums[0] * (xp.f64(unit) * 2.0**-SUM_BITS)


def added(
    xp: Backend,
    x: Array,
    axes: Axes,
    terms: int,
    meet: Callable[[Array], Array],
    spread: Callable[[Array], Array],
    add: Callable[[Array], Array],
) -> Array:
    """The sums of numbers by target, float64.

    axes: of a row; terms: how many numbers meet, at most. `meet` takes the largest magnitude of each target, 0 where
    nothing is added, `spread` gives each number what its target has, `add` adds integers by target.
    """
    if not is_float64(x):
        check_length(terms, SUM_BITS)
    e = exponents(xp, meet(magnitudes(xp, x, axes)))
    return joined(xp, [add(part) for part in slices(xp, x, spread(e), terms)], e, terms)


def by_index(xp: Backend, x: Array, index: Array, rows: int) -> Array:
    """Rows of numbers [M, C], added up by their index [M] -> float64 [rows, C]."""
    if 0 in tuple(x.shape):
        return xp.add_at(index, x, rows)

    def meet(most: Array) -> Array:
        return xp.largest_at(index, most, rows)

    return added(xp, x, (1,), x.shape[0], meet, lambda e: xp.take_rows(e, index), lambda q: xp.add_at(index, q, rows))
