"""Dense layers and embeddings."""

from repro.portable.definitions.grids import (
    Operation,
    check_length,
    exact_sum,
    product,
    quantize,
    rounded_product,
    scaled,
)
from repro.portable.definitions.xp import Backend
from repro.portable.numbers.constants import BITS, SUM_BITS


def _forward(xp: Backend, x, weight, bias):
    """x [..., I], weight [O, I], bias [O] or None -> [..., O]; a grid for each row of x, one for the weight."""
    outputs, inputs = weight.shape
    q, p = quantize(xp, xp.reshape(x, (-1, inputs)), (1,))
    w, s = quantize(xp, weight, (0, 1))
    q, w = xp.operands(q, w, work=q.shape[0] * inputs * outputs)
    y = rounded_product(xp, q, xp.transpose(w), p, s, plus=bias)
    return y if len(x.shape) == 2 else xp.reshape(y, (*x.shape[:-1], outputs)), (q, p, w, s)


def _backward(xp: Backend, saved, gradient, needs, shapes):
    """x keeps the grids of its rows: their scales go into the gradient, which then has a grid for each output."""
    q, p, w, s = saved
    grad_x = grad_weight = grad_bias = None
    rows = xp.reshape(gradient, (-1, gradient.shape[-1]))
    if needs[0]:
        g, r = quantize(xp, rows, (1,))
        grad_x = xp.reshape(rounded_product(xp, xp.operand_like(g, w), w, r, s), shapes[0])
    if needs[1]:
        h, r = quantize(xp, rows * p, (0,), batch=True)
        total = product(xp, xp.transpose(xp.operand_like(h, w)), q, ranks=xp.ranks.size)
        grad_weight = xp.r32(scaled(xp, xp.total(total), 2 * BITS, xp.transpose(r)))
    if shapes[2] is not None and needs[2]:
        grad_bias = xp.r32(exact_sum(xp, rows, (0,), batch=True))[0]
    return grad_x, grad_weight, grad_bias


linear = Operation(_forward, _backward)


def _embed(xp: Backend, index, weight):
    """index int [...], weight [N, C] -> [..., C]: rows of the weight."""
    return xp.take_rows(weight, index), (index,)


def _embed_backward(xp: Backend, saved, gradient, needs, shapes):
    """Every row is an exact sum, on one grid for the whole gradient: what is added has no order."""
    (index,) = saved
    flat = xp.reshape(gradient, (-1, gradient.shape[-1]))
    check_length(flat.shape[0] * xp.ranks.size, SUM_BITS)
    q, p = quantize(xp, flat, (0, 1), SUM_BITS, batch=True)
    total = xp.total(xp.add_at(xp.reshape(index, (-1,)), q, shapes[1][0]))
    return None, xp.r32(scaled(xp, total, SUM_BITS, p))


embedding = Operation(_embed, _embed_backward)
