"""Products of matrices of float32 or float64.

Each operand of float32 is one slice of BITS bits, or two: then what the first one leaves counts, too.

A row of the first factor meets columns of the second. Or it is one of weights, as a softmax gives them, of rows of the second:
what it does not weigh, as padding and later words, changes no bit then. Its numbers say which of both: see are_weights.
"""

from functools import partial

from repro.portable.definitions.bits import is_float64
from repro.portable.definitions.grids import (
    operand_bits,
    operands,
    product,
    product_of_slices,
    rounded,
    scaled,
    sliced,
)
from repro.portable.definitions.xp import Array, Backend
from repro.portable.numbers.constants import BITS, POWER_BITS


def matmul(xp: Backend, a: Array, b: Array, plus: Array | None = None, slices: int = 1) -> Array:
    """a [M, K] b [K, N] + plus [N], rounded once: a grid for each row of a, and for each column of b."""
    if is_float64(a):
        y = batched(xp, a, b)
        return y if plus is None else y + plus
    q, p = sliced(xp, a, (1,), slices)
    w, s = sliced(xp, b, (0,), slices)
    work = a.shape[0] * a.shape[1] * b.shape[1]
    q, w = operands(xp, q, [xp.transpose(each) for each in w], work=work)
    y = product_of_slices(partial(product, xp), q, [xp.transpose(each) for each in w])
    return xp.r32(scaled(xp, y, 2 * BITS, p, s, plus=plus))


def batched(xp: Backend, a: Array, b: Array, slices: int = 1) -> Array:
    """The products of many matrices, [..., M, K] and [..., K, N]."""
    bits = operand_bits(a, a.shape[-1])
    (q, p), (w, s) = sliced(xp, a, (-1,), slices, bits=bits), sliced(xp, b, (-2,), slices, bits=bits)
    return rounded(xp, product_of_slices(partial(product, xp, bits=bits), q, w, bits), 2 * bits, p, s)


NEAR = 2.0**-8
"""How far the sum of weights may be from 1, as those of bfloat16 are rounded."""


def are_weights(xp: Backend, a: Array) -> Array:
    """If the rows of a matrix are weights, numbers in [0, 1] whose sum is 1: [..., M, K] -> bool [..., 1, 1].

    Rows of zeros or with a NaN may be among them: they give zeros, or NaN, in any form. Sums are exact where they may be 1.
    """
    part = xp.where((a >= 0) & (a <= 1), a, xp.where(a == a, 4.0, xp.nan))
    total = xp.sum(xp.rint(xp.f64(part) * 2.0**POWER_BITS), (-1,))
    low, high = (1 - NEAR) * 2.0**POWER_BITS, (1 + NEAR) * 2.0**POWER_BITS
    one, none = (total >= low) & (total <= high), (total == 0) | (total != total)
    counts = [xp.sum(xp.where(each, 1.0, 0.0), (-2,)) for each in (one, none)]
    return (counts[0] > 0) & (counts[0] + counts[1] == float(a.shape[-2]))


def by_form(xp: Backend, a: Array, b: Array, slices: int = 1) -> Array:
    """`weighted` where a matrix is one of weights, `batched` elsewhere, without two products of float32."""
    found = are_weights(xp, a)
    if is_float64(a):
        return xp.where(found, weighted(xp, a, b), batched(xp, a, b))
    a, b, unit = of_one_form(xp, a, b, found)
    (q, p), (w, s) = sliced(xp, a, (-1,), slices), sliced(xp, b, (-2,), slices)
    return xp.r32(scaled(xp, product_of_slices(partial(product, xp), q, w), 2 * BITS, p, s, unit))


def of_one_form(xp: Backend, a: Array, b: Array, found: Array) -> tuple[Array, Array, Array]:
    """float32 factors whose product by rows and columns, times a unit, is `weighted` where that was found.

    There rows of b are below 2^BITS, and their scales are in a. One more row, without weight, makes that the grid of each column.
    """
    up, p = xp.grids(b, (-1,), BITS, False)
    more = [(0, 0)] * (len(a.shape) - 2)
    a = xp.pad(xp.where(found, a * xp.transpose(p), a), (*more, (0, 0), (0, 1)))
    below, line = (*more, (0, 1), (0, 0)), 0.75 * 2.0**BITS
    b = xp.where(found, xp.pad(b * up, below, line), xp.pad(b, below))
    return a, b, xp.where(found, 2.0**-BITS, 1.0)


def weighted(xp: Backend, a: Array, b: Array, slices: int = 1) -> Array:
    """The products of many matrices, of weights and rows: a grid for each row of b, as for each of a.

    The scales of b go into a. So a row of the result depends on the rows of b alone whose weight is not 0.
    """
    bits = operand_bits(a, a.shape[-1])
    w, s = sliced(xp, b, (-1,), slices, bits=bits)
    q, p = sliced(xp, a * xp.transpose(s), (-1,), slices, bits=bits)
    return rounded(xp, product_of_slices(partial(product, xp, bits=bits), q, w, bits), 2 * bits, p)
