"""Products of matrices of float32 or float64.

Each operand of float32 is one slice of BITS bits, or two: then what the first one leaves counts, too.
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
from repro.portable.numbers.constants import BITS


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
