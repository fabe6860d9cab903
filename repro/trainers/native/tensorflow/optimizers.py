"""Optimizers of mnist_tensorflow.py, as PyTorch and Optax define them.

Keras' differ: its momentum holds the learning rate, its Adam moves epsilon. Counterparts of this file are
repro/trainers/native/pytorch/optimizers.py and repro/trainers/native/jax/optimizers.py.
"""

import tensorflow as tf

from repro.trainers.loop import layout
from repro.trainers.loop.config import Params


class Optimizer:
    """The slots of every weight: by name, variables that start from zero."""

    def __init__(self, params: Params, weights: dict[str, tf.Variable]) -> None:
        self.params, self.weights = params, weights
        self.slots = {
            layout.slot(slot, name): tf.Variable(tf.zeros_like(w))
            for slot in layout.SLOTS[params.optimizer]
            for name, w in weights.items()
        }
        if params.optimizer == "adam":
            self.slots[layout.ADAM_COUNT] = tf.Variable(0.0)

    def of(self, name: str) -> list[tf.Variable]:
        """The slots of one weight, in the order of layout.SLOTS."""
        return [self.slots[layout.slot(slot, name)] for slot in layout.SLOTS[self.params.optimizer]]

    def update(self, gradients: dict[str, tf.Tensor]) -> None:
        """Updates all weights, and the slots."""
        raise NotImplementedError


class Sgd(Optimizer):
    """v = momentum v + g; w = w - learning_rate v."""

    def update(self, gradients: dict[str, tf.Tensor]) -> None:
        for name, gradient in gradients.items():
            (momentum,) = self.of(name)
            momentum.assign(self.params.momentum * momentum + gradient)
            self.weights[name].assign_sub(self.params.learning_rate * momentum)


class Adam(Optimizer):
    """Kingma and Ba, "Adam", 2015, algorithm 1."""

    BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8

    def update(self, gradients: dict[str, tf.Tensor]) -> None:
        count = self.slots[layout.ADAM_COUNT].assign_add(1.0)
        for name, gradient in gradients.items():
            first, second = self.of(name)
            first.assign(self.BETA1 * first + (1 - self.BETA1) * gradient)
            second.assign(self.BETA2 * second + (1 - self.BETA2) * tf.square(gradient))
            unbiased_first = first / (1 - tf.pow(self.BETA1, count))
            unbiased_second = second / (1 - tf.pow(self.BETA2, count))
            step = unbiased_first / (tf.sqrt(unbiased_second) + self.EPSILON)
            self.weights[name].assign_sub(self.params.learning_rate * step)


class Adadelta(Optimizer):
    """Zeiler, "ADADELTA: An Adaptive Learning Rate Method", 2012, algorithm 1, its step times the learning rate."""

    RHO, EPSILON = 0.95, 1e-7

    def update(self, gradients: dict[str, tf.Tensor]) -> None:
        for name, gradient in gradients.items():
            squared_gradient, squared_update = self.of(name)
            squared_gradient.assign(self.RHO * squared_gradient + (1 - self.RHO) * tf.square(gradient))
            step = tf.sqrt(squared_update + self.EPSILON) / tf.sqrt(squared_gradient + self.EPSILON) * gradient
            squared_update.assign(self.RHO * squared_update + (1 - self.RHO) * tf.square(step))
            self.weights[name].assign_sub(self.params.learning_rate * step)


OPTIMIZERS: dict[str, type[Optimizer]] = {"sgd": Sgd, "adam": Adam, "adadelta": Adadelta}


def optimizer(params: Params, weights: dict[str, tf.Variable]) -> Optimizer:
    """The optimizer that `params.optimizer` names."""
    return OPTIMIZERS[params.optimizer](params, weights)
