"""Optimizers for JAX with optax's names and arguments.

    optimizer = optim.adamw(1e-3)
    state = optimizer.init(weights)
    weights, state = optimizer.update(weights, state, gradients)

Weights, gradients and slots are pytrees of float32; the state is a dictionary of such, with the number of steps, that
can be saved. `update` is pure and works under jit. These are no optax transformations: optax adds a finished update to
the weight in float32, which rounds once more. Rates, momenta and betas are rounded to float32, see
repro/portable/definitions/optimizers.py for the formulas, which are PyTorch's.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array
from jax import numpy as jnp

from repro.portable.arguments import check_floats, check_shapes
from repro.portable.backends.jax import Backend
from repro.portable.definitions import optimizers
from repro.portable.library.jax.functional import check_float64
from repro.portable.numbers import tables


class Optimizer(NamedTuple):
    """Two functions."""

    init: Callable[[Any], dict[str, Any]]
    """weights -> state"""
    update: Callable[..., tuple[Any, dict[str, Any]]]
    """weights, state, gradients -> weights, state; with `learning_rate=` by another rate, a number or an array"""


def sgd(
    learning_rate: float | Array, momentum: float = 0.0, nesterov: bool = False, weight_decay: float = 0.0
) -> Optimizer:
    """Gradient descent; weight_decay times the weight is added to the gradient."""
    optimizers.check_options("sgd", momentum=momentum)
    beta = tables.float32(momentum)

    def step(_: Array, rate: Array, decay: float, weight: Array, gradient: Array, *slots: Array):
        (slot,) = slots or (jnp.zeros_like(weight),)
        return optimizers.sgd(Backend, weight, gradient, slot, rate, decay, beta, nesterov)[: 1 + len(slots)]

    return _made("sgd", step, learning_rate, weight_decay, ("momentum",) if beta else ())


def adam(
    learning_rate: float | Array, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8, weight_decay: float = 0.0
) -> Optimizer:
    """Adam; weight_decay times the weight is added to the gradient."""
    return _made("adam", _adam("adam", b1, b2, eps), learning_rate, weight_decay, ("first", "second"))


def adamw(
    learning_rate: float | Array,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
    weight_decay: float = 1e-4,
    mask: Any = None,
) -> Optimizer:
    """AdamW; mask: a tree of bools as the weights, or a function of them that returns it, says which weights decay."""
    return _made("adamw", _adam("adamw", b1, b2, eps), learning_rate, weight_decay, ("first", "second"), mask)


def _adam(name: str, b1: float, b2: float, eps: float) -> Callable[..., Any]:
    optimizers.check_options(name, b1=b1, b2=b2, eps=eps)
    betas, decoupled = (tables.float32(b1), tables.float32(b2)), name == "adamw"

    def step(done: Array, rate: Array, decay: float, weight: Array, gradient: Array, first: Array, second: Array):
        table = jnp.asarray(tables.adam(*betas))
        corrections = table[:, jnp.minimum(done, table.shape[1] - 1)]
        return optimizers.adam(
            Backend, weight, gradient, first, second, corrections, rate, decay, *betas, eps, decoupled
        )

    return step


def adadelta(
    learning_rate: float | Array = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0.0
) -> Optimizer:
    """Adadelta; weight_decay times the weight is added to the gradient."""
    optimizers.check_options("adadelta", rho=rho, eps=eps)
    keep = tables.float32(rho)

    def step(_: Array, rate: Array, decay: float, weight: Array, gradient: Array, squares: Array, updates: Array):
        return optimizers.adadelta(Backend, weight, gradient, squares, updates, rate, decay, keep, eps)

    return _made("adadelta", step, learning_rate, weight_decay, ("squares", "updates"))


def _made(
    name: str,
    step: Callable[..., Any],
    learning_rate: float | Array,
    weight_decay: float,
    slots: tuple[str, ...],
    mask: Any = None,
) -> Optimizer:
    """The optimizer that does this step, given how many are done, to each weight and its slots."""
    optimizers.check_options(name, weight_decay=weight_decay)
    _check_rate(name, learning_rate)

    def init(weights: Any) -> dict[str, Any]:
        check_float64()
        for weight in jax.tree.leaves(weights):
            check_floats(name, weight=weight)
        return {"count": jnp.zeros((), jnp.int32), **{slot: jax.tree.map(jnp.zeros_like, weights) for slot in slots}}

    def update(weights: Any, state: dict[str, Any], gradients: Any, learning_rate: float | Array = learning_rate):
        check_float64()
        _check_rate(name, learning_rate)
        leaves, tree = jax.tree.flatten(weights)
        columns = [tree.flatten_up_to(each) for each in (gradients, *(state[slot] for slot in slots))]
        for weight, gradient in zip(leaves, columns[0], strict=True):
            check_floats(name, weight=weight, gradient=gradient)
        masks = mask(weights) if callable(mask) else mask
        decays = [True] * len(leaves) if masks is None else tree.flatten_up_to(masks)
        rate = Backend.f64(Backend.r32(jnp.asarray(learning_rate, jnp.float64)))
        decay = tables.float32(weight_decay)
        rows = [
            step(state["count"], rate, decay if decayed else 0.0, *row)
            for decayed, *row in zip(decays, leaves, *columns, strict=True)
        ]
        new, *others = (tree.unflatten(column) for column in zip(*rows, strict=True))
        return new, {"count": state["count"] + 1, **dict(zip(slots, others, strict=True))}

    return Optimizer(init, update)


def _check_rate(name: str, rate: float | Array) -> None:
    """UsageError unless this is a number of at least 0; one that is traced has any value."""
    if isinstance(rate, (Array, np.ndarray)):
        check_shapes(name, (), learning_rate=rate)
    if not isinstance(rate, jax.core.Tracer):
        optimizers.check_options(name, learning_rate=rate.item() if isinstance(rate, (Array, np.ndarray)) else rate)
