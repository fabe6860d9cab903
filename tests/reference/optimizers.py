"""Reference: steps of optimizers."""

import numpy as np

from reference.arithmetic import Array, exact_dot, f64, r32
from repro.portable.numbers import tables

# Constants are float32 numbers, but eps: products with them are exact. Each gives the weight, then its slots.


def moving(old: Array, new: Array, momentum: float, factor: float = 1.0) -> Array:
    """A moving average: (1 - momentum) old + momentum new, for new times factor; both shares rounded to float32."""
    old_share, new_share = float(np.float32(1.0 - momentum)), float(np.float32(momentum))
    return r32(f64(old) * old_share + f64(r32(f64(new) * factor)) * new_share)


def _decayed(weight: Array, gradient: Array, decay: float) -> Array:
    return r32(f64(gradient) + decay * f64(weight)) if decay else gradient


def sgd(weight, gradient, momentum, rate: float, decay: float, beta: float, nesterov: bool) -> tuple[Array, Array]:
    """v = beta v + g, w = w - rate v; with Nesterov's momentum w = w - rate (g + beta v). g has decay w added."""
    gradient = _decayed(weight, gradient, decay)
    momentum = r32(beta * f64(momentum) + f64(gradient))
    step = r32(f64(gradient) + beta * f64(momentum)) if nesterov else momentum
    return r32(f64(weight) - rate * f64(step)), momentum


def adam(weight, gradient, first, second, corrections, rate, decay, beta1, beta2, eps, decoupled: bool):
    """D. Kingma and J. Ba, arXiv 1412.6980; decoupled: I. Loshchilov and F. Hutter, arXiv 1711.05101.

    corrections: 1 / (1 - beta1^t) and 1 / (1 - beta2^t) of this step, float64.
    """
    gradient = gradient if decoupled else _decayed(weight, gradient, decay)
    square = r32(f64(gradient) * f64(gradient))
    first = r32(beta1 * f64(first) + tables.float32(1.0 - beta1) * f64(gradient))
    second = r32(beta2 * f64(second) + tables.float32(1.0 - beta2) * f64(square))
    step = r32(f64(first) * corrections[0] / (np.sqrt(f64(second) * corrections[1]) + eps))
    if decoupled:
        step = _decayed(weight, step, decay)
    return r32(f64(weight) - rate * f64(step)), first, second


def adadelta(weight, gradient, squares, updates, rate: float, decay: float, rho: float, eps: float):
    """M. Zeiler, arXiv 1212.5701."""
    gradient = f64(_decayed(weight, gradient, decay))
    squares = r32(rho * f64(squares) + tables.float32(1.0 - rho) * f64(r32(gradient * gradient)))
    above, below = f64(r32(np.sqrt(f64(updates) + eps))), f64(r32(np.sqrt(f64(squares) + eps)))
    step = f64(r32(f64(r32(above / below)) * gradient))
    updates = r32(rho * f64(updates) + tables.float32(1.0 - rho) * f64(r32(step * step)))
    return r32(f64(weight) - rate * step), squares, updates


def clip(gradients: list[Array], limit: float) -> tuple[list[Array], Array]:
    """Each times limit / (norm + 1e-6), where that is below 1, and the norm of all. Their squares add up in order."""
    total = 0.0
    for gradient in gradients:
        flat = gradient.reshape(-1)
        total += exact_dot(flat, flat, (0,))[0]
    norm = r32(np.sqrt(total))
    ratio = r32(limit / (f64(norm) + 1e-6))
    factor = f64(1.0 if ratio > 1 else ratio)
    return [r32(f64(gradient) * factor) for gradient in gradients], norm
