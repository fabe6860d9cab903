"""Dense layers and embeddings."""

from repro.portable.constants import BITS, SUM_BITS
from repro.portable.operations.grids import Operation, exact_sum, product, quantize, scaled


def _forward(X, x, weight, bias):
    """x [..., I], weight [O, I], bias [O] or None -> [..., O]; a grid for each row of x, one for the weight."""
    q, p = quantize(X, x, (-1,))
    w, s = quantize(X, weight, (0, 1))
    y = scaled(X, scaled(X, product(X, q, X.transpose(w)), p, BITS), X.reshape(s, ()), BITS)
    if bias is not None:
        y = y + X.f64(bias)
    return X.r32(y), (q, p, w, s, bias)


def _backward(X, saved, gradient, needs, shapes):
    """x keeps the grids of its rows: their scales go into the gradient, which then has a grid for each output."""
    q, p, w, s, bias = saved
    of_x = of_weight = of_bias = None
    if needs[0]:
        g, r = quantize(X, gradient, (-1,))
        of_x = X.r32(scaled(X, scaled(X, product(X, g, w), r, BITS), X.reshape(s, ()), BITS))
    rows = X.reshape(gradient, (-1, gradient.shape[-1]))
    if needs[1]:
        h, r = quantize(X, rows * X.reshape(p, (-1, 1)), (0,), batch=True)
        total = X.total(product(X, X.transpose(h), X.reshape(q, (-1, q.shape[-1])), ranks=X.ranks.size))
        of_weight = X.r32(scaled(X, total, X.transpose(r), 2 * BITS))
    if bias is not None and needs[2]:
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
    q, p = quantize(X, flat, (0, 1), SUM_BITS, batch=True)
    total = X.total(X.add_at(X.reshape(index, (-1,)), q, shapes[1][0]))
    return None, X.r32(scaled(X, total, p, SUM_BITS))


embedding = Operation(_embed, _embed_backward)
