"""Operations of mnist_jax.py in portable numerics.

Images are [C, H, W, B] and kernels [h, w, I, O].
JAX must have float64: jax.config.update("jax_enable_x64", True).
"""

import jax
import optax
from jax import Array
from jax import numpy as jnp

from repro.portable.backends.jax import Backend
from repro.portable.definitions import optimizers
from repro.portable.definitions.convolution import OUTPUTS_FIRST, PLAIN, convolution
from repro.portable.definitions.linear import linear
from repro.portable.definitions.losses import cross_entropy
from repro.portable.definitions.pointwise import pixels
from repro.portable.library.autograd.jax import apply
from repro.portable.numbers import tables
from repro.portable.numbers.constants import BETA1, BETA2
from repro.trainers.loop import float32
from repro.trainers.loop.config import Params
from repro.trainers.native.jax import layers


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
        rate, momentum = float32.nearest(params.learning_rate), float32.nearest(params.momentum)
        self.step, self.constants = optimizers.of_trainer(params.optimizer, rate, momentum)

    def each(self, weights: dict[str, Array], gradients: dict[str, Array], *slots: dict[str, Array], **more: Array):
        """Computes new weights and new slots."""
        constants = self.constants | more
        result = {
            name: self.step(Backend, weights[name], gradients[name], *(slot[name] for slot in slots), **constants)
            for name in weights
        }
        return tuple({name: arrays[i] for name, arrays in result.items()} for i in range(1 + len(slots)))


class Sgd(Optimizer):
    def init(self, weights: dict[str, Array]) -> optax.TraceState:
        return optax.TraceState(jax.tree.map(jnp.zeros_like, weights))

    def update(self, weights, slots, gradients):
        weights, momenta = self.each(weights, gradients, slots.trace)
        return weights, optax.TraceState(momenta)


class Adam(Optimizer):
    def init(self, weights: dict[str, Array]) -> optax.ScaleByAdamState:
        zeros = jax.tree.map(jnp.zeros_like, weights)
        return optax.ScaleByAdamState(jnp.zeros((), jnp.int32), zeros, jax.tree.map(jnp.copy, zeros))

    def update(self, weights, slots, gradients):
        table = jnp.asarray(tables.adam(BETA1, BETA2))
        corrections = table[:, jnp.minimum(slots.count, table.shape[1] - 1)]
        weights, first, second = self.each(weights, gradients, slots.mu, slots.nu, corrections=corrections)
        return weights, optax.ScaleByAdamState(slots.count + 1, first, second)


class Adadelta(Optimizer):
    def init(self, weights: dict[str, Array]) -> tuple[optax.ScaleByAdaDeltaState]:
        zeros = jax.tree.map(jnp.zeros_like, weights)
        return (optax.ScaleByAdaDeltaState(zeros, jax.tree.map(jnp.copy, zeros)),)

    def update(self, weights, slots, gradients):
        weights, squares, updates = self.each(weights, gradients, slots[0].e_g, slots[0].e_x)
        return weights, (optax.ScaleByAdaDeltaState(squares, updates),)
