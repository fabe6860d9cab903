"""The layers of mnist_tensorflow.py, fast on the CPU in what XLA compiles, rounding and choosing as the twins do.

Images are [B, H, W, C]. Within the layers the batch comes last, [C, H, W, B]: XLA's loops on the CPU then run over
whole vectors. The twin is repro/native/jax/layers.py.
"""

import tensorflow as tf

from repro.portable.tensorflow.convolution import BATCH_LAST, correlate, correlate_with, spread


def conv(x: tf.Tensor, kernel: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """Valid convolution with bias: [B, H, W, I], [h, w, I, O] and [O] -> [B, H - h + 1, W - w + 1, O]."""
    y = convolve(tf.transpose(x, BATCH_LAST), kernel)
    return tf.transpose(y + bias[:, None, None, None], BATCH_LAST)


@tf.custom_gradient
def convolve(x: tf.Tensor, kernel: tf.Tensor):
    """The convolution alone, [I, H, W, B] -> [O, H - h + 1, W - w + 1, B], as matrix products."""

    def gradients(gradient: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return spread(gradient, kernel), correlate_with(x, gradient)

    return correlate(x, kernel), gradients
