"""Steps of optimizers, on float32 arrays of one weight, and clipping. All constants are float32 numbers, but eps.

Each function returns the new weight and then the new slots.
"""

import math

from repro.portable import tables
from repro.portable.constants import BITS
from repro.portable.operations.grids import check_length, quantize, scaled


def sgd(X, weight, gradient, momentum, rate, decay: float, beta: float, nesterov: bool):
    """v = beta v + g, w = w - rate v, with g + decay w for g; with Nesterov's momentum g + beta v for the last v.

    I. Sutskever et al., On the importance of initialization and momentum in deep learning, ICML 2013, in the form
    that PyTorch has.
    """
    gradient = _decayed(X, weight, gradient, decay)
    momentum = X.r32(beta * X.f64(momentum) + X.f64(gradient))
    step = X.r32(beta * X.f64(momentum) + X.f64(gradient)) if nesterov else momentum
    return X.r32(X.f64(weight) - rate * X.f64(step)), momentum


def adam(X, weight, gradient, first, second, corrections, rate, decay, beta1, beta2, eps, decoupled: bool):
    """D. Kingma and J. Ba, arXiv 1412.6980; with `decoupled` AdamW, I. Loshchilov and F. Hutter, arXiv 1711.05101.

    corrections: 1 / (1 - beta^t) for both betas, float64, see tables.adam.
    """
    if not decoupled:
        gradient = _decayed(X, weight, gradient, decay)
    g = X.f64(gradient)
    first = X.r32(beta1 * X.f64(first) + tables.float32(1.0 - beta1) * g)
    second = X.r32(beta2 * X.f64(second) + tables.float32(1.0 - beta2) * X.f64(X.r32(g * g)))
    step = X.r32(X.f64(first) * corrections[0] / (X.sqrt(X.f64(second) * corrections[1]) + eps))
    if decoupled and decay:
        step = X.r32(X.f64(step) + decay * X.f64(weight))
    return X.r32(X.f64(weight) - rate * X.f64(step)), first, second


def adadelta(X, weight, gradient, squares, updates, rate, decay, rho, eps):
    """M. Zeiler, arXiv 1212.5701."""
    g, rest = X.f64(_decayed(X, weight, gradient, decay)), tables.float32(1.0 - rho)
    squares = X.r32(rho * X.f64(squares) + rest * X.f64(X.r32(g * g)))
    above, below = (X.r32(X.sqrt(X.f64(slot) + eps)) for slot in (updates, squares))
    step = X.f64(X.r32(X.f64(X.r32(X.f64(above) / X.f64(below))) * g))
    updates = X.r32(rho * X.f64(updates) + rest * X.f64(X.r32(step * step)))
    return X.r32(X.f64(weight) - rate * step), squares, updates


def _decayed(X, weight, gradient, decay: float):
    return X.r32(X.f64(gradient) + decay * X.f64(weight)) if decay else gradient


def clip(X, gradients: list, limit: float):
    """Gradients times min(1, limit / norm), and the norm over all of them, float32: squares added in their order."""
    total = None
    for gradient in gradients:
        check_length(math.prod([int(size) for size in gradient.shape]))
        q, p = quantize(X, X.reshape(gradient, (-1,)), (0,))
        part = scaled(X, X.sum(X.f64(q) * X.f64(q), (0,)), 2 * BITS, p, p)
        total = part if total is None else total + part
    norm = X.r32(X.sqrt(total))
    ratio = X.r32(limit / (X.f64(norm) + 1e-6))
    factor = X.f64(X.where(ratio > 1.0, 1.0, ratio))
    return [X.r32(X.f64(gradient) * factor) for gradient in gradients], X.reshape(norm, ())
