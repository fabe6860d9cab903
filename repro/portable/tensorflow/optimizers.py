"""The optimizers of portable numerics in TensorFlow."""

import tensorflow as tf

from repro.portable import rules
from repro.portable.tensorflow.grids import double, to_state
from repro.run import float32, layout
from repro.run.config import Params


def optimizer(params: Params, weights: dict[str, tf.Variable]) -> "Sgd | Adam":
    """SGD with momentum, or Adam; see reference.sgd and reference.adam."""
    return (Adam if params.optimizer == "adam" else Sgd)(params, weights)


class Sgd:
    def __init__(self, params: Params, weights: dict[str, tf.Variable]) -> None:
        self.rate, self.decay = float32.nearest(params.learning_rate), float32.nearest(params.momentum)
        self.weights = weights
        self.slots = {layout.slot("momentum", name): tf.Variable(tf.zeros_like(w)) for name, w in weights.items()}

    def update(self, gradients: dict[str, tf.Tensor]) -> None:
        for name, gradient in gradients.items():
            weight, momentum = self.weights[name], self.slots[layout.slot("momentum", name)]
            momentum.assign(to_state(self.decay * double(momentum) + double(gradient)))
            weight.assign(to_state(double(weight) - self.rate * double(momentum)))


class Adam:
    def __init__(self, params: Params, weights: dict[str, tf.Variable]) -> None:
        self.rate = float32.nearest(params.learning_rate)
        self.weights = weights
        self.slots = {
            layout.slot(slot, name): tf.Variable(tf.zeros_like(w))
            for slot in layout.SLOTS["adam"]
            for name, w in weights.items()
        }
        self.slots[layout.ADAM_COUNT] = tf.Variable(0.0)

    def update(self, gradients: dict[str, tf.Tensor]) -> None:
        corrections = tf.constant(rules.adam_corrections())
        count = self.slots[layout.ADAM_COUNT]
        at = tf.minimum(tf.cast(count, tf.int64), corrections.shape[1] - 1)
        correction = tf.gather(corrections, at, axis=1)
        count.assign_add(1.0)
        for name, gradient in gradients.items():
            weight = self.weights[name]
            first, second = (self.slots[layout.slot(slot, name)] for slot in layout.SLOTS["adam"])
            g = double(gradient)
            first.assign(to_state(rules.BETA1 * double(first) + (1 - rules.BETA1) * g))
            square = double(to_state(g * g))
            second.assign(to_state(rules.BETA2 * double(second) + (1 - rules.BETA2) * square))
            root = tf.sqrt(double(second) * correction[1])
            step = to_state(double(first) * correction[0] / (root + rules.EPSILON))
            weight.assign(to_state(double(weight) - self.rate * double(step)))
