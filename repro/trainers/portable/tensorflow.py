"""Operations of mnist_tensorflow.py in portable numerics.

Images are [B, H, W, C] and kernels [h, w, I, O]. Within the layers the batch comes last, [C, H, W, B], so that XLA's
loops run over whole vectors. Compile the step around them with tf.function(jit_compile=True): XLA joins what TensorFlow
would do one by one, and twice as fast.
"""

import tensorflow as tf

from repro.portable.backends.correlation.tensorflow import BATCH_LAST
from repro.portable.backends.tensorflow import Backend
from repro.portable.definitions import optimizers
from repro.portable.definitions.convolution import OUTPUTS_FIRST, PLAIN, convolution
from repro.portable.definitions.linear import linear
from repro.portable.definitions.losses import cross_entropy
from repro.portable.definitions.pointwise import pixels
from repro.portable.library.autograd.tensorflow import apply
from repro.portable.numbers import tables
from repro.portable.numbers.constants import BETA1, BETA2
from repro.trainers.loop import float32, layout
from repro.trainers.loop.config import Params
from repro.trainers.native.tensorflow import layers
from repro.trainers.native.tensorflow.optimizers import Optimizer


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


class PortableOptimizer(Optimizer):
    """An optimizer that updates one weight after another."""

    def __init__(self, params: Params, weights: dict[str, tf.Variable]) -> None:
        super().__init__(params, weights)
        rate, momentum = float32.nearest(params.learning_rate), float32.nearest(params.momentum)
        self.step, self.constants = optimizers.of_trainer(params.optimizer, rate, momentum)

    def update(self, gradients: dict[str, tf.Tensor]) -> None:
        corrections = self._corrections()
        for name, gradient in gradients.items():
            variables = [self.weights[name], *self.of(name)]
            weight, *slots = map(tf.convert_to_tensor, variables)
            values = self.step(Backend, weight, gradient, *slots, *corrections, **self.constants)
            for variable, value in zip(variables, values, strict=True):
                variable.assign(value)

    def _corrections(self) -> list[tf.Tensor]:
        """The corrections of Adam, whose step is counted."""
        count = self.slots.get(layout.ADAM_COUNT)
        if count is None:
            return []
        table = tf.constant(tables.adam(BETA1, BETA2))
        corrections = tf.gather(table, tf.minimum(tf.cast(count, tf.int64), table.shape[1] - 1), axis=1)
        count.assign_add(1.0)
        return [corrections]


optimizer = PortableOptimizer
