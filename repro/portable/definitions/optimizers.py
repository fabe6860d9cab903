"""Steps of optimizers, and gradient clipping.

Arrays are float32, of one weight. All constants are float32 numbers, but eps. Each function returns the new weight and
then the new slots.
"""

import math
from collections.abc import Callable
from typing import Any

from repro.portable.arguments import check, check_number, check_share
from repro.portable.definitions.grids import check_length, quantize, scaled
from repro.portable.definitions.xp import Backend
from repro.portable.numbers import tables
from repro.portable.numbers.constants import ADADELTA_EPSILON, BETA1, BETA2, BITS, EPSILON, RHO

SHARES, BETAS = ("momentum", "rho"), ("b1", "b2", "beta_1", "beta_2", "betas")


def check_options(optimizer: str, **options: Any) -> None:
    """UsageError for a number that an optimizer has no portable form for; PyTorch's `betas` are two."""
    numbers = [(name, each) for name, value in options.items() for each in (value if name == "betas" else (value,))]
    for name, value in numbers:
        if name in SHARES:
            check_share(optimizer, name, value)
        else:
            check_number(optimizer, name, value, 0.0, tables.LARGEST_BETA if name in BETAS else math.inf)


def sgd(xp: Backend, weight, gradient, momentum, rate, decay: float, beta: float, nesterov: bool):
    """v = beta v + g, w = w - rate v, with g + decay w for g; with Nesterov's momentum g + beta v for the last v.

    I. Sutskever et al., On the importance of initialization and momentum in deep learning, ICML 2013, in the form
    that PyTorch has.
    """
    gradient = _decayed(xp, weight, gradient, decay)
    momentum = xp.r32(beta * xp.f64(momentum) + xp.f64(gradient))
    step = xp.r32(beta * xp.f64(momentum) + xp.f64(gradient)) if nesterov else momentum
    return xp.r32(xp.f64(weight) - rate * xp.f64(step)), momentum


def adam(xp: Backend, weight, gradient, first, second, corrections, rate, decay, beta1, beta2, eps, decoupled: bool):
    """D. Kingma and J. Ba, arXiv 1412.6980; with `decoupled` AdamW, I. Loshchilov and F. Hutter, arXiv 1711.05101.

    corrections: 1 / (1 - beta^t) for both betas, float64, see tables.adam.
    """
    if not decoupled:
        gradient = _decayed(xp, weight, gradient, decay)
    g = xp.f64(gradient)
    first = xp.r32(beta1 * xp.f64(first) + tables.float32(1.0 - beta1) * g)
    second = xp.r32(beta2 * xp.f64(second) + tables.float32(1.0 - beta2) * xp.f64(xp.r32(g * g)))
    step = xp.r32(xp.f64(first) * corrections[0] / (xp.sqrt(xp.f64(second) * corrections[1]) + eps))
    if decoupled and decay:
        step = xp.r32(xp.f64(step) + decay * xp.f64(weight))
    return xp.r32(xp.f64(weight) - rate * xp.f64(step)), first, second


def adadelta(xp: Backend, weight, gradient, squares, updates, rate, decay, rho, eps):
    """M. Zeiler, arXiv 1212.5701."""
    g, rest = xp.f64(_decayed(xp, weight, gradient, decay)), tables.float32(1.0 - rho)
    squares = xp.r32(rho * xp.f64(squares) + rest * xp.f64(xp.r32(g * g)))
    above, below = (xp.r32(xp.sqrt(xp.f64(slot) + eps)) for slot in (updates, squares))
    step = xp.f64(xp.r32(xp.f64(xp.r32(xp.f64(above) / xp.f64(below))) * g))
    updates = xp.r32(rho * xp.f64(updates) + rest * xp.f64(xp.r32(step * step)))
    return xp.r32(xp.f64(weight) - rate * step), squares, updates


def _decayed(xp: Backend, weight, gradient, decay: float):
    return xp.r32(xp.f64(gradient) + decay * xp.f64(weight)) if decay else gradient


def of_trainer(name: str, rate: float, momentum: float) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The step of the reference trainers' optimizer of this name, and its constants, by keyword. UsageError if it has none."""
    betas = {"beta1": BETA1, "beta2": BETA2}
    known: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
        "sgd": (sgd, {"beta": momentum, "nesterov": False}),
        "adam": (adam, {**betas, "eps": EPSILON, "decoupled": False}),
        "adadelta": (adadelta, {"rho": RHO, "eps": ADADELTA_EPSILON}),
    }
    remedy = f"choose one of {', '.join(known)}, or params.numerics=deterministic"
    check("params.optimizer", name in known, f"{name} has no portable form; {remedy}")
    step, constants = known[name]
    return step, {"rate": rate, "decay": 0.0, **constants}


def clip(xp: Backend, gradients: list, limit: float):
    """Gradients times min(1, limit / norm), and the norm over all of them, float32: squares added in their order."""
    total = None
    for gradient in gradients:
        check_length(math.prod([int(size) for size in gradient.shape]))
        q, p = quantize(xp, xp.reshape(gradient, (-1,)), (0,))
        part = scaled(xp, xp.sum(xp.f64(q) * xp.f64(q), (0,)), 2 * BITS, p, p)
        total = part if total is None else total + part
    norm = xp.r32(xp.sqrt(total))
    ratio = xp.r32(limit / (xp.f64(norm) + 1e-6))
    factor = xp.f64(xp.where(ratio > 1.0, 1.0, ratio))
    return [xp.r32(xp.f64(gradient) * factor) for gradient in gradients], xp.reshape(norm, ())
