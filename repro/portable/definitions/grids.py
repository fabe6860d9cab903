"""Operations: quantization grids, exact sums, exact products."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from repro.errors import UsageError
from repro.portable.definitions import doubles
from repro.portable.definitions.bits import exponent_above, is_float64, pow2_f32
from repro.portable.definitions.doubles import product_bits
from repro.portable.definitions.xp import Array, Axes, Backend
from repro.portable.numbers.constants import BITS, MEAN_BITS, SIGNIFICAND, SUM_BITS

Multiply = Callable[[Array, Array], Array]
"""A product of two operands, exact for integers."""


@dataclass(frozen=True)
class Operation:
    """A function and its gradient, over a backend, `xp`.

    `forward(xp, *arrays, **options)` returns the result, or a tuple of it and of arrays that have no gradient, and a
    tuple of what `backward` needs. `backward(xp, saved, gradient, needs, shapes, **options)` returns one gradient for
    each of the arrays, float32, or None. `needs` says for each whether somebody asks for it, `shapes` its shape.

    What is float32 holds what r32 gives: 0, or magnitudes of 2^-100 and more. Of smaller ones from elsewhere some
    devices make zeros, and others do not, so `relu`, `max_pool` and `affine` might differ.
    """

    forward: Callable[..., tuple[Any, tuple[Array | None, ...]]]
    backward: Callable[..., tuple[Array | None, ...]]


def quantize(xp: Backend, x: Array, axes: Axes, bits: int = BITS, batch: bool = False) -> tuple[Array, Array]:
    """Integers q, as float32, and powers of two p, with x close to q p 2^-bits and |q| <= 2^bits.

    Each group of numbers along the axes has a p of its own, float32, with axes of size 1: the smallest power of two
    above all its magnitudes, at least 2^-100. It is NaN where a magnitude is 2^127 or more, or not a number. With
    `batch` the samples lie along the axes: the largest over all ranks counts.
    """
    up, p = xp.grids(x, axes, bits, batch)
    return xp.rint(x * up), p


def operand_bits(x: Array, terms: int) -> int:
    """Bits of a slice of an operand, where the sums are of this number of products: BITS, of float64 up to 24."""
    return product_bits(terms) if is_float64(x) else BITS


def sliced(
    xp: Backend, x: Array, axes: Axes, slices: int, batch: bool = False, bits: int = BITS
) -> tuple[list[Array], Array]:
    """Integers as quantize gives them, with BITS bits; then those of what they leave, with the next BITS bits; and p.

    The first slice lies below 2^BITS, or equals it, each further one is at most half of it. All are exact. Slices
    of float64 have `bits` bits; there are enough of them to hold each number whole, and p is the unit of the first.
    """
    if is_float64(x):
        return doubles.slices(xp, x, axes, bits)
    up, p = xp.grids(x, axes, BITS, batch)
    rest = x * up
    parts = [xp.rint(rest)]
    for _ in range(slices - 1):
        rest = (rest - parts[-1]) * 2.0**BITS
        parts.append(xp.rint(rest))
    return parts, p


def grids(xp: Backend, x: Array, axes: Axes, bits: int, batch: bool) -> tuple[Array, Array]:
    """2^bits / p and p for each group, see quantize; where p is NaN the first is any power of two."""
    e = exponent_above(xp, x, axes)
    if batch:
        e = xp.ranks.maximum(e)[0]
    return pow2_f32(xp, bits - e), xp.where(e > 127, xp.nan, pow2_f32(xp, e))


def scaled(xp: Backend, total: Array, bits: int, *scales: Array, plus: Array | None = None) -> Array:
    """An exact sum of integers in its unit, float64: times 2^-bits and powers of two, which is exact as well.

    And `plus`, float32 numbers, added, which rounds once.
    """
    unit = unit_of(xp, bits, *scales)
    return total * unit if plus is None else xp.multiply_add(total, unit, xp.f64(plus))


def unit_of(xp: Backend, bits: int, *scales: Array) -> Array:
    """2^-bits times powers of two, float64."""
    unit = xp.f64(scales[0]) * 2.0**-bits
    for scale in scales[1:]:
        unit = unit * xp.f64(scale)
    return unit


def rounded(xp: Backend, total: Array, bits: int, *scales: Array, plus: Array | None = None) -> Array:
    """An exact sum as scaled() has it, rounded to float32; of operands that were float64, as their scales are, float64."""
    if not is_float64(scales[0]):
        return xp.r32(scaled(xp, total, bits, *scales, plus=plus))
    for unit in scales:
        total = total * unit
    return total if plus is None else total + plus


def product(xp: Backend, a: Array, b: Array, ranks: int = 1, bits: int = BITS) -> Array:
    """The product of matrices of quantized numbers, float64, exact; still so where each of `ranks` adds its own to it.

    UsageError where a sum is too long for that. Engines are for operands of BITS bits.
    """
    check_length(a.shape[-1] * ranks, 2 * bits)
    return xp.matmul(a, b) if bits == BITS else xp.f64(a) @ xp.f64(b)


def operands(xp: Backend, a: list[Array], b: list[Array], **how: Any) -> tuple[list[Array], list[Array]]:
    """Slices of two arrays in the form in which the matmul backend takes them: see Backend.operands."""
    pairs = [xp.operands(first, second, **how) for first, second in zip(a, b, strict=True)]
    return [first for first, _ in pairs], [second for _, second in pairs]


def product_of_slices(multiply: Multiply, a: list[Array], b: list[Array], bits: int = BITS) -> Array:
    """The product of numbers in slices, in the unit of the first ones, float64: each sum exact, joined from the smallest.

    Products of slices that are below the last slice count for nothing: of two slices there are three products.
    """
    parts = []
    for order in range(len(a)):
        part = multiply(a[0], b[order])
        for index in range(1, order + 1):
            part = part + multiply(a[index], b[order - index])
        parts.append(part)
    return doubles.joined(parts, bits)


def rounded_product(xp: Backend, a: Array, b: Array, *scales: Array, plus: Array | None = None) -> Array:
    """The product of matrices of quantized numbers, of whose grids the first is one for each row: see scaled.

    float32: rounded once. What is added is one number for each column.
    """
    if "int16" not in str(a.dtype):
        return xp.r32(scaled(xp, product(xp, a, b), 2 * BITS, *scales, plus=plus))
    check_length(a.shape[-1])
    return xp.rounded_matmul(a, b, unit_of(xp, 2 * BITS, *scales), plus)


def check_length(terms: int, bits: int = 2 * BITS) -> None:
    """UsageError where a sum of `terms` integers of up to 2^bits, as products of two operands, might not be exact."""
    longest = 2 ** (SIGNIFICAND - bits)
    if terms > longest:
        raise UsageError(
            f"portable numerics: a sum of {terms} numbers is too long to be exact: {longest} are the most; make "
            "the batch or the layer smaller"
        )


def exact_sum(xp: Backend, x: Array, axes: Axes, batch: bool = False, bits: int = SUM_BITS) -> Array:
    """The sum along the axes, float64, with axes of size 1, of x on a grid for each sum."""
    check_length(count(xp, x.shape, axes, batch), bits)
    q, p = quantize(xp, x, axes, bits, batch)
    total = xp.sum(q, axes)
    return scaled(xp, xp.total(total) if batch else total, bits, p)


def exact_mean(xp: Backend, x: Array, axes: Axes, batch: bool = False) -> Array:
    """The mean along the axes, float32, with axes of size 1."""
    return xp.r32(exact_sum(xp, x, axes, batch, MEAN_BITS) * (1.0 / count(xp, x.shape, axes, batch)))


def exact_dot(xp: Backend, a: Array, b: Array, axes: Axes, batch: bool = False, slices: int = 1) -> Array:
    """The sum of a b along the axes, float64, with axes of size 1, of both in slices on a grid for each sum."""
    (q, p), (r, s) = sliced(xp, a, axes, slices, batch), sliced(xp, b, axes, slices, batch)
    check_length(count(xp, a.shape, axes, batch))

    def multiply(first: Array, second: Array) -> Array:
        total = xp.sum(xp.f64(first) * xp.f64(second), axes)
        return xp.total(total) if batch else total

    return scaled(xp, product_of_slices(multiply, q, r), 2 * BITS, p, s)


def count(xp: Backend, shape: Sequence[int], axes: Axes, batch: bool = False) -> int:
    """The number of numbers along these axes of a shape; with `batch` on all ranks."""
    return math.prod([int(shape[axis]) for axis in axes]) * (xp.ranks.size if batch else 1)
