"""Sums and products of float64 numbers, by slices.

A number is cut into slices on a grid: integers so small that their sums, and those of their products, are exact in
float64. The sums of the slices are added from the smallest on, and products of slices below the last one are left out.
So a result is as exact as float64, relative to the largest numbers of its groups.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

SIGNIFICAND = 53
SMALLEST = -900
"""Grids are no finer than for numbers of this exponent: all scales are float64 numbers."""


def exponent_above(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    """The least e with |x| < 2^e for all numbers along the axes, int64, with axes of size 1."""
    most = (x.view(torch.int64) & 0x7FFFFFFFFFFFFFFF).amax(axes, keepdim=True)
    return ((most >> 52) - 1022).clamp(SMALLEST, 1024)


def power_of_two(e: Tensor) -> Tensor:
    """2^e for -1022 <= e <= 1023, float64."""
    return ((e + 1023) << 52).view(torch.float64)


def slices(x: Tensor, axes: tuple[int, ...], bits: int, number: int) -> tuple[list[Tensor], Tensor]:
    """Integers of at most 2^bits, a slice after the other, and 2^(e - bits), the unit of the first.

    The unit is NaN where a number of the group is infinite or NaN.
    """
    e = exponent_above(x, axes)
    unit = power_of_two(torch.where(e > 1023, 0, e) - bits)
    rest, found = x / unit, []
    for _ in range(number):
        found.append(torch.round(rest))
        rest = (rest - found[-1]) * 2.0**bits
    return found, torch.where(e > 1023, math.nan, unit)


def number(bits: int) -> int:
    """The slices that hold all of a number as large as the largest of its group."""
    return -(-SIGNIFICAND // bits)


def total(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    """The sum along the axes, with axes of size 1."""
    terms = math.prod(x.shape[axis] for axis in axes)
    if not terms:
        return x.sum(axes, keepdim=True)
    bits = SIGNIFICAND - 1 - max(1, terms - 1).bit_length()
    parts, unit = slices(x, axes, bits, number(bits))
    found = torch.zeros((), dtype=torch.float64, device=x.device)
    for part in reversed(parts):
        found = found * 2.0**-bits + part.sum(axes, keepdim=True)
    return found * unit


def bits_of(terms: int) -> int:
    """Bits of the slices of two operands, so that sums of this number of products are exact; float32 holds them."""
    return min((SIGNIFICAND - 1 - max(1, terms - 1).bit_length()) // 2, 24)


def operand(x: Tensor, axes: tuple[int, ...], bits: int) -> tuple[list[Tensor], Tensor]:
    """The slices of an operand of products, see slices."""
    return slices(x, axes, bits, number(bits))


def multiplied(
    first: list[Tensor], second: list[Tensor], bits: int, multiply: Callable[[Tensor, Tensor], Tensor]
) -> Tensor:
    """What a product of two operands, exact for integers, gives for all slices, in units of the first of both."""
    found = torch.zeros((), dtype=torch.float64, device=first[0].device)
    for order in reversed(range(len(first))):
        part = multiply(first[0], second[order])
        for place in range(1, order + 1):
            part = part + multiply(first[place], second[order - place])
        found = found * 2.0**-bits + part
    return found


def product(a: Tensor, b: Tensor) -> Tensor:
    """The product of matrices, [..., M, K] and [..., K, N]: rows and columns on grids of their own."""
    bits = bits_of(a.shape[-1])
    (first, p), (second, s) = operand(a, (-1,), bits), operand(b, (-2,), bits)
    return multiplied(first, second, bits, torch.matmul) * p * s
