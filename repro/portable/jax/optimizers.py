"""The optimizers of portable numerics in JAX."""

import jax
import optax
from jax import Array
from jax import numpy as jnp

from repro.portable import rules
from repro.portable.jax.grids import double, to_state
from repro.run import float32
from repro.run.config import Params


def optimizer(params: Params) -> "Sgd | Adam":
    """SGD with momentum, or Adam; see reference.sgd and reference.adam."""
    return (Adam if params.optimizer == "adam" else Sgd)(params)


class Sgd:
    def __init__(self, params: Params) -> None:
        self.rate, self.decay = float32.nearest(params.learning_rate), float32.nearest(params.momentum)

    def init(self, weights: dict[str, Array]) -> optax.TraceState:
        return optax.TraceState(jax.tree.map(jnp.zeros_like, weights))

    def update(self, weights, slots, gradients):
        momenta = {
            name: to_state(self.decay * double(slots.trace[name]) + gradient) for name, gradient in gradients.items()
        }
        weights = {name: to_state(weight - self.rate * double(momenta[name])) for name, weight in weights.items()}
        return weights, optax.TraceState(momenta)


class Adam:
    def __init__(self, params: Params) -> None:
        self.rate = float32.nearest(params.learning_rate)

    def init(self, weights: dict[str, Array]) -> optax.ScaleByAdamState:
        zeros = jax.tree.map(jnp.zeros_like, weights)
        return optax.ScaleByAdamState(jnp.zeros((), jnp.int32), zeros, jax.tree.map(jnp.copy, zeros))

    def update(self, weights, slots, gradients):
        corrections = jnp.asarray(rules.adam_corrections())
        correction = corrections[:, jnp.minimum(slots.count, corrections.shape[1] - 1)]
        first, second, updated = {}, {}, {}
        for name, weight in weights.items():
            g = double(gradients[name])
            first[name] = to_state(rules.BETA1 * double(slots.mu[name]) + (1 - rules.BETA1) * g)
            square = double(to_state(g * g))
            second[name] = to_state(rules.BETA2 * double(slots.nu[name]) + (1 - rules.BETA2) * square)
            root = jnp.sqrt(double(second[name]) * correction[1])
            step = to_state(double(first[name]) * correction[0] / (root + rules.EPSILON))
            updated[name] = to_state(weight - self.rate * double(step))
        return updated, optax.ScaleByAdamState(slots.count + 1, first, second)
