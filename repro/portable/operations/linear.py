"""Dense layers and embeddings."""

from repro.portable.constants import BITS, SUM_BITS
from repro.portable.operations.grids import (
    Operation,
    check_length,
    exact_sum,
    product,
    quantize,
    rounded_product,
    scaled,
)


def _forward(X, x, weight, bias):
    """x [..., I], weight [O, I], bias [O] or None -> [..., O]; a grid for each row of x, one for the weight."""
    outputs, inputs = weight.shape
    q, p = quantize(X, X.reshape(x, (-1, inputs)), (1,))
    w, s = quantize(X, weight, (0, 1))
    q, w = X.operands(q, w, work=q.shape[0] * inputs * outputs)
    y = rounded_product(X, q, X.transpose(w), p, s, plus=bias)
    return X.reshape(y, (*x.shape[:-1], outputs)), (q, p, w, s)


def _backward(X, saved, gradient, needs, shapes):
    """x keeps the grids of its rows: their scales go into the gradient, which then has a grid for each output."""
    q, p, w, s = saved
    of_x = of_weight = of_bias = None
    rows = X.reshape(gradient, (-1, gradient.shape[-1]))
    if needs[0]:
        g, r = quantize(X, rows, (1,))
        of_x = X.reshape(rounded_product(X, X.operand_like(g, w), w, r, s), shapes[0])
    if needs[1]:
        h, r = quantize(X, rows * p, (0,), batch=True)
        total = product(X, X.transpose(X.operand_like(h, w)), q, ranks=X.ranks.size)
        of_weight = X.r32(scaled(X, X.total(total), 2 * BITS, X.transpose(r)))
    if shapes[2] is not None and needs[2]:
        of_bias = X.r32(exact_sum(X, rows, (0,), batch=True))[0]
    return of_x, of_weight, of_bias


linear = Operation(_forward, _backward)


def _embed(X, index, weight):
    """index int [...], weight [N, C] -> [..., C]: rows of the weight."""
    return X.take_rows(weight, index), (index,)


def _embed_backward(X, saved, gradient, needs, shapes):
    """Every row is an exact sum, on one grid for the whole gradient: what is added has no order."""
    (index,) = saved
    flat = X.reshape(gradient, (-1, gradient.shape[-1]))
    check_length(flat.shape[0] * X.ranks.size, SUM_BITS)
    q, p = quantize(X, flat, (0, 1), SUM_BITS, batch=True)
    total = X.total(X.add_at(X.reshape(index, (-1,)), q, shapes[1][0]))
    return None, X.r32(scaled(X, total, SUM_BITS, p))


embedding = Operation(_embed, _embed_backward)
