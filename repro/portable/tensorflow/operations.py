"""Operations of mnist_tensorflow.py in portable numerics.

Images are [B, H, W, C] and kernels [h, w, I, O]. Within the layers the batch comes last, [C, H, W, B], so that XLA's
loops run over whole vectors. Compile the step around them with tf.function(jit_compile=True): XLA joins what TensorFlow
would do one by one, and twice as fast.
"""

import numpy as np
import tensorflow as tf

from repro.portable import tables
from repro.portable.constants import BETA1, BETA2
from repro.portable.operations import optimizers
from repro.portable.operations.convolution import OUTPUTS_FIRST, PLAIN, convolution
from repro.portable.operations.linear import linear
from repro.portable.operations.losses import cross_entropy
from repro.portable.operations.pointwise import pixels
from repro.portable.tensorflow.autograd import apply
from repro.portable.tensorflow.backend import Backend
from repro.portable.tensorflow.convolution import BATCH_LAST
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


PLACES = A, B, C, D = np.arange(4, dtype=np.uint8)  # in a 2 x 2 window


def max_pool(x: tf.Tensor) -> tf.Tensor:
    """Maximum of each 2 x 2 window; the gradient goes to the first of equals."""
    return tf.transpose(_max_pool(tf.transpose(x, BATCH_LAST)), BATCH_LAST)


@tf.custom_gradient
def _max_pool(x: tf.Tensor):
    channels, height, width, _ = x.shape
    x = tf.reshape(x, (channels, height // 2, 2, width // 2, 2, -1))
    a, b, c, d = (x[:, :, i, :, j] for i in range(2) for j in range(2))
    left, right = a >= b, c >= d
    upper, lower = tf.where(left, a, b), tf.where(right, c, d)
    above = upper >= lower
    first = tf.where(above, tf.where(left, A, B), tf.where(right, C, D))

    def gradients(gradient: tf.Tensor) -> tf.Tensor:
        # Piece by piece, and then to its place: the first convolution takes back the transposition.
        pieces = tf.stack([tf.where(first == place, gradient, tf.zeros_like(gradient)) for place in PLACES])
        x = tf.transpose(tf.reshape(pieces, (2, 2, *gradient.shape)), (2, 3, 0, 4, 1, 5))
        return tf.reshape(x, (channels, height, width, -1))

    return tf.where(above, upper, lower), gradients


def mean_loss(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """The mean over the batch, float32."""
    return apply(cross_entropy, logits, labels)


def total_loss(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """The sum over the batch, float64, exact."""
    return apply(cross_entropy, logits, labels, mean=False)


class Optimizer:
    """The slots of every weight: by name, variables that start from zero."""

    def __init__(self, params: Params, weights: dict[str, tf.Variable]) -> None:
        self.names = layout.SLOTS[params.optimizer]
        rate, momentum = float32.nearest(params.learning_rate), float32.nearest(params.momentum)
        self.step, self.constants = optimizers.of_trainer(params.optimizer, rate, momentum)
        self.weights = weights
        self.slots = {
            layout.slot(slot, name): tf.Variable(tf.zeros_like(w)) for slot in self.names for name, w in weights.items()
        }
        if params.optimizer == "adam":
            self.slots[layout.ADAM_COUNT] = tf.Variable(0.0)

    def update(self, gradients: dict[str, tf.Tensor]) -> None:
        """Updates all weights, and the slots."""
        corrections = self._corrections()
        for name, gradient in gradients.items():
            places = [self.weights[name], *(self.slots[layout.slot(slot, name)] for slot in self.names)]
            weight, *slots = map(tf.convert_to_tensor, places)
            found = self.step(Backend, weight, gradient, *slots, *corrections, **self.constants)
            for place, value in zip(places, found, strict=True):
                place.assign(value)

    def _corrections(self) -> list[tf.Tensor]:
        """Those of Adam, whose step is counted."""
        count = self.slots.get(layout.ADAM_COUNT)
        if count is None:
            return []
        table = tf.constant(tables.adam(BETA1, BETA2))
        found = tf.gather(table, tf.minimum(tf.cast(count, tf.int64), table.shape[1] - 1), axis=1)
        count.assign_add(1.0)
        return [found]


optimizer = Optimizer
