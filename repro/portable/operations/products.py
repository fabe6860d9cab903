"""Products of matrices of numbers."""

from repro.portable.constants import BITS
from repro.portable.operations.grids import product, quantize, scaled
from repro.portable.xp import Array, Backend


def matmul(xp: Backend, a: Array, b: Array, plus: Array | None = None) -> Array:
    """a [M, K] b [K, N] + plus [N], float32, rounded once: a grid for each row of a, and for each column of b."""
    q, p = quantize(xp, a, (1,))
    w, s = quantize(xp, b, (0,))
    w = xp.transpose(w)
    q, w = xp.operands(q, w, work=q.shape[0] * w.shape[0] * w.shape[1])
    return xp.r32(scaled(xp, product(xp, q, xp.transpose(w)), 2 * BITS, p, s, plus=plus))


def batched(xp: Backend, a: Array, b: Array) -> Array:
    """The same of many matrices, [..., M, K] and [..., K, N]."""
    q, p = quantize(xp, a, (-1,))
    w, s = quantize(xp, b, (-2,))
    return xp.r32(scaled(xp, product(xp, q, w), 2 * BITS, p, s))
