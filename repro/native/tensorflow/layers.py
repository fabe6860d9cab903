"""The layers of mnist_tensorflow.py, fast on the CPU in what XLA compiles, rounding and choosing as the twins do.

Images are [B, H, W, C]. Within the layers the batch comes last, [C, H, W, B]: XLA's loops on the CPU then run over
whole vectors. The twin is repro/native/jax/layers.py.
"""

from types import ModuleType

import tensorflow as tf

from repro.native.filtering import fits
from repro.native.tensorflow import filtering
from repro.portable.tensorflow import convolution as definition


def conv(x: tf.Tensor, kernel: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """Valid convolution with bias: [B, H, W, I], [h, w, I, O] and [O] -> [B, H - h + 1, W - w + 1, O]."""
    y = convolve(tf.transpose(x, definition.BATCH_LAST), kernel)
    return tf.transpose(y + bias[:, None, None, None], definition.BATCH_LAST)


@tf.custom_gradient
def convolve(x: tf.Tensor, kernel: tf.Tensor):
    """The convolution alone, [I, H, W, B] -> [O, H - h + 1, W - w + 1, B], as matrix products."""
    way = _way(x, kernel)

    def gradients(gradient: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return way.spread(gradient, kernel), way.correlate_with(x, gradient)

    return way.correlate(x, kernel), gradients


def _way(x: tf.Tensor, kernel: tf.Tensor) -> ModuleType:
    width = kernel.shape[1]
    return filtering if fits(x.shape[0], width, x.shape[2] - width + 1) else definition
