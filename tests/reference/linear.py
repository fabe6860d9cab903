"""Reference: dense layers and embeddings."""

import numpy as np

from reference.arithmetic import Array, exact_sum, f64, grid, halves, product_of_halves, r32
from repro.portable.numbers.constants import BITS, SUM_BITS


def linear(x: Array, weight: Array, bias: Array | None) -> Array:
    """x [..., I], weight [O, I], bias [O] -> [..., O]. A grid for each row of x, one for the weight."""
    (q, p), (w, s) = grid(x, (-1,)), grid(weight, (0, 1))
    y = (q @ w.T) * (p * s[0] * 2.0 ** (-2 * BITS))
    return r32(y if bias is None else y + f64(bias))


def linear_gradients(x: Array, weight: Array, bias: Array | None, gradient: Array):
    """That of the weight: x is on the grids of its rows. Their p go into the gradient, with a grid for each output."""
    (q, p), (w, s), (g, r) = grid(x, (-1,)), grid(weight, (0, 1)), grid(gradient, (-1,))
    grad_x = r32((g @ w) * (r * s[0] * 2.0 ** (-2 * BITS)))
    rows, inputs = gradient.reshape(-1, len(weight)), q.reshape(-1, weight.shape[1])
    h, r = grid(rows * p.reshape(-1, 1), (0,))
    grad_weight = r32((h.T @ inputs) * (r.T * 2.0 ** (-2 * BITS)))
    return grad_x, grad_weight, None if bias is None else r32(exact_sum(rows, (0,)))[0]


def matmul(a: Array, b: Array, plus: Array | None = None) -> Array:
    """a [..., M, K] b [..., K, N] + plus [N]: a grid for each row of a, and for each column of b."""
    (q, p), (w, s) = grid(a, (-1,)), grid(b, (-2,))
    y = (q @ w) * (p * s * 2.0 ** (-2 * BITS))
    return r32(y if plus is None else y + f64(plus))


def matmul_highest(a: Array, b: Array, plus: Array | None = None) -> Array:
    """The same of operands in two slices."""
    (q, p), (w, s) = halves(a, (-1,)), halves(b, (-2,))
    y = product_of_halves(np.matmul, q, w) * (p * s * 2.0 ** (-2 * BITS))
    return r32(y if plus is None else y + f64(plus))


def embedding(index: Array, weight: Array) -> Array:
    """index int [...], weight [N, C] -> [..., C]."""
    return weight[index]


def embedding_gradients(index: Array, weight: Array, gradient: Array):
    """Each row of the weight has the sum of the gradients of its uses; there is one grid for the whole gradient."""
    q, p = grid(gradient.reshape(-1, weight.shape[1]), (0, 1), SUM_BITS)
    total = np.zeros(weight.shape, np.int64)
    for row, use in zip(index.reshape(-1), q, strict=True):
        total[row] += use
    return None, r32(total * (p * 2.0**-SUM_BITS))
