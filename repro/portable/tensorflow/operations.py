"""Operations of mnist_tensorflow.py in portable numerics.

Images are [B, H, W, C] and kernels [h, w, I, O]. Within the layers the batch comes last, [C, H, W, B], so that XLA's
loops run over whole vectors. Compile the step around them with tf.function(jit_compile=True): XLA joins what TensorFlow
would do one by one, and twice as fast.
"""

import tensorflow as tf

from repro.native.tensorflow import layers
from repro.native.tensorflow.convolution import BATCH_LAST
from repro.native.tensorflow.optimizers import Optimizer
from repro.portable import tables
from repro.portable.constants import ADADELTA_EPSILON, BETA1, BETA2, EPSILON, RHO
from repro.portable.operations import optimizers
from repro.portable.operations.convolution import OUTPUTS_FIRST, PLAIN, convolution
from repro.portable.operations.linear import linear
from repro.portable.operations.losses import cross_entropy
from repro.portable.operations.pointwise import pixels
from repro.portable.tensorflow.autograd import apply
from repro.portable.tensorflow.backend import Backend
from repro.run import float32, layout
from repro.run.config import Params


def inputs(images: tf.Tensor) -> tf.Tensor:
    """uint8 [B, H, W] -> float32 [B, H, W, 1]."""
    return pixels(Backend, images)[..., None]


def conv(x: tf.Tensor, kernel: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """Valid convolution with bias."""
    y = apply(convolution, tf.transpose(x, BATCH_LAST), tf.transpose(kernel, OUTPUTS_FIRST), bias, **PLAIN)
    return tf.transpose(y, BATCH_LAST)


def dense(x: tf.Tensor, kernel: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """[B, I], [I, O], [O] -> [B, O]."""
    return apply(linear, x, tf.transpose(kernel), bias)


max_pool = layers.max_pool  # a choice and no arithmetic: exact as it is


def mean_loss(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """The mean over the batch, float32."""
    return apply(cross_entropy, logits, labels)


def total_loss(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """The sum over the batch, float64, exact."""
    return apply(cross_entropy, logits, labels, mean=False)


def optimizer(params: Params, weights: dict[str, tf.Variable]) -> Optimizer:
    """The optimizer that `params.optimizer` names."""
    return {"sgd": Sgd, "adam": Adam, "adadelta": Adadelta}[params.optimizer](params, weights)


class Portable(Optimizer):
    """One weight after another."""

    def __init__(self, params: Params, weights: dict[str, tf.Variable]) -> None:
        super().__init__(params, weights)
        self.rate, self.momentum = float32.nearest(params.learning_rate), float32.nearest(params.momentum)

    def update(self, gradients: dict[str, tf.Tensor]) -> None:
        for name, gradient in gradients.items():
            variables = [self.weights[name], *self.of(name)]
            weight, *slots = map(tf.convert_to_tensor, variables)
            for variable, value in zip(variables, self.stepped(weight, gradient, *slots), strict=True):
                variable.assign(value)

    def stepped(self, weight: tf.Tensor, gradient: tf.Tensor, *slots: tf.Tensor) -> tuple[tf.Tensor, ...]:
        raise NotImplementedError


class Sgd(Portable):
    def stepped(self, weight, gradient, momentum):
        return optimizers.sgd(Backend, weight, gradient, momentum, self.rate, 0.0, self.momentum, nesterov=False)


class Adam(Portable):
    def update(self, gradients: dict[str, tf.Tensor]) -> None:
        corrections, count = tf.constant(tables.adam(BETA1, BETA2)), self.slots[layout.ADAM_COUNT]
        self.corrections = tf.gather(
            corrections, tf.minimum(tf.cast(count, tf.int64), corrections.shape[1] - 1), axis=1
        )
        count.assign_add(1.0)
        super().update(gradients)

    def stepped(self, weight, gradient, first, second):
        return optimizers.adam(
            Backend,
            weight,
            gradient,
            first,
            second,
            self.corrections,
            self.rate,
            0.0,
            BETA1,
            BETA2,
            EPSILON,
            decoupled=False,
        )


class Adadelta(Portable):
    def stepped(self, weight, gradient, squares, updates):
        return optimizers.adadelta(Backend, weight, gradient, squares, updates, self.rate, 0.0, RHO, ADADELTA_EPSILON)
