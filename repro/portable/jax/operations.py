"""Operations of mnist_jax.py in portable numerics.

Images are [C, H, W, B] and kernels [h, w, I, O].
JAX must have float64: jax.config.update("jax_enable_x64", True).
"""

import jax
import optax
from jax import Array
from jax import numpy as jnp

from repro.native.jax import layers
from repro.portable import tables
from repro.portable.constants import ADADELTA_EPSILON, BETA1, BETA2, EPSILON, RHO
from repro.portable.jax.autograd import apply
from repro.portable.jax.backend import Backend
from repro.portable.operations import optimizers
from repro.portable.operations.convolution import OUTPUTS_FIRST, PLAIN, convolution
from repro.portable.operations.linear import linear
from repro.portable.operations.losses import cross_entropy
from repro.portable.operations.pointwise import pixels
from repro.run import float32
from repro.run.config import Params


def inputs(images: Array) -> Array:
    """uint8 [B, H, W] -> float32 [1, H, W, B]."""
    return pixels(Backend, images).transpose(1, 2, 0)[None]


def conv(x: Array, kernel: Array, bias: Array) -> Array:
    """Valid convolution with bias."""
    return apply(convolution, x, kernel.transpose(OUTPUTS_FIRST), bias, **PLAIN)


def dense(x: Array, kernel: Array, bias: Array) -> Array:
    """[B, I], [I, O], [O] -> [B, O]."""
    return apply(linear, x, kernel.T, bias)


max_pool = layers.max_pool  # a choice and no arithmetic: exact as it is


def mean_loss(logits: Array, labels: Array) -> Array:
    """The mean over the batch, float32."""
    return apply(cross_entropy, logits, labels)


def total_loss(logits: Array, labels: Array) -> Array:
    """The sum over the batch, float64, exact."""
    return apply(cross_entropy, logits, labels, mean=False)


def optimizer(params: Params) -> "Optimizer":
    """The optimizer that `params.optimizer` names."""
    return {"sgd": Sgd, "adam": Adam, "adadelta": Adadelta}[params.optimizer](params)


class Optimizer:
    """Slots in the classes that Optax has for them."""

    def __init__(self, params: Params) -> None:
        self.rate, self.momentum = float32.nearest(params.learning_rate), float32.nearest(params.momentum)

    def each(self, step, weights: dict[str, Array], gradients: dict[str, Array], *slots: dict[str, Array]):
        """New weights, and new slots, of a step that is given weight, gradient and slots."""
        found = {name: step(weights[name], gradients[name], *(slot[name] for slot in slots)) for name in weights}
        return tuple({name: arrays[i] for name, arrays in found.items()} for i in range(1 + len(slots)))


class Sgd(Optimizer):
    def init(self, weights: dict[str, Array]) -> optax.TraceState:
        return optax.TraceState(jax.tree.map(jnp.zeros_like, weights))

    def update(self, weights, slots, gradients):
        def step(weight, gradient, momentum):
            return optimizers.sgd(Backend, weight, gradient, momentum, self.rate, 0.0, self.momentum, nesterov=False)

        weights, momenta = self.each(step, weights, gradients, slots.trace)
        return weights, optax.TraceState(momenta)


class Adam(Optimizer):
    def init(self, weights: dict[str, Array]) -> optax.ScaleByAdamState:
        zeros = jax.tree.map(jnp.zeros_like, weights)
        return optax.ScaleByAdamState(jnp.zeros((), jnp.int32), zeros, jax.tree.map(jnp.copy, zeros))

    def update(self, weights, slots, gradients):
        corrections = jnp.asarray(tables.adam(BETA1, BETA2))
        correction = corrections[:, jnp.minimum(slots.count, corrections.shape[1] - 1)]

        def step(weight, gradient, first, second):
            return optimizers.adam(
                Backend,
                weight,
                gradient,
                first,
                second,
                correction,
                self.rate,
                0.0,
                BETA1,
                BETA2,
                EPSILON,
                decoupled=False,
            )

        weights, first, second = self.each(step, weights, gradients, slots.mu, slots.nu)
        return weights, optax.ScaleByAdamState(slots.count + 1, first, second)


class Adadelta(Optimizer):
    def init(self, weights: dict[str, Array]) -> tuple[optax.ScaleByAdaDeltaState]:
        zeros = jax.tree.map(jnp.zeros_like, weights)
        return (optax.ScaleByAdaDeltaState(zeros, jax.tree.map(jnp.copy, zeros)),)

    def update(self, weights, slots, gradients):
        def step(weight, gradient, squares, updates):
            return optimizers.adadelta(
                Backend, weight, gradient, squares, updates, self.rate, 0.0, RHO, ADADELTA_EPSILON
            )

        weights, squares, updates = self.each(step, weights, gradients, slots[0].e_g, slots[0].e_x)
        return weights, (optax.ScaleByAdaDeltaState(squares, updates),)
