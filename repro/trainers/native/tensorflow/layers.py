"""Layers of mnist_tensorflow.py, fast on a CPU.

Images are [B, H, W, C]. Within the layers the batch comes last, [C, H, W, B]: XLA's loops on the CPU then run over
whole vectors. Its counterparts are repro/trainers/native/pytorch/layers.py and repro/trainers/native/jax/layers.py.
"""

import numpy as np
import tensorflow as tf

from repro.portable.backends.correlation.tensorflow import BATCH_LAST, correlate, correlate_with, spread


def conv(x: tf.Tensor, kernel: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """Valid convolution with bias: [B, H, W, I], [h, w, I, O] and [O] -> [B, H - h + 1, W - w + 1, O]."""
    y = convolve_as_product(tf.transpose(x, BATCH_LAST), kernel)
    return tf.transpose(y + bias[:, None, None, None], BATCH_LAST)


@tf.custom_gradient
def convolve_as_product(x: tf.Tensor, kernel: tf.Tensor):
    """The convolution alone, [I, H, W, B] -> [O, H - h + 1, W - w + 1, B], as a matrix product."""

    def backward(gradient: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return spread(gradient, kernel), correlate_with(x, gradient)

    return correlate(x, kernel), backward


WINDOW = A, B, C, D = np.arange(4, dtype=np.uint8)  # the elements of a 2 x 2 window, row by row


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

    def backward(gradient: tf.Tensor) -> tf.Tensor:
        # Piece by piece, and then to its place: the first convolution takes back the transposition.
        pieces = tf.stack([tf.where(first == element, gradient, tf.zeros_like(gradient)) for element in WINDOW])
        x = tf.transpose(tf.reshape(pieces, (2, 2, *gradient.shape)), (2, 3, 0, 4, 1, 5))
        return tf.reshape(x, (channels, height, width, -1))

    return tf.where(above, upper, lower), backward
