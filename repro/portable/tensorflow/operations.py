"""Portable numerics in TensorFlow: the operations of reference.py, with gradients, on any device.

Images are [B, H, W, C] and kernels [h, w, I, O], as TensorFlow has them; activations are float64, weights float32.
Within the layers the batch comes last, [C, H, W, B], so that loops run over whole vectors. Compile the step around them
with tf.function(jit_compile=True): XLA joins what TensorFlow would do one by one, and twice as fast.
"""

import numpy as np
import tensorflow as tf

from repro.portable import rules
from repro.portable.rules import operand_bits
from repro.portable.tensorflow.convolution import BATCH_LAST, correlate, correlate_with, spread
from repro.portable.tensorflow.grids import exponent, round_to_grid, to_state
from repro.portable.tensorflow.optimizers import optimizer as optimizer  # one of the operations
from repro.run.ranks import ALONE

ranks = ALONE
"""Who shares the batch; the trainer sets it. Sums over samples, and their grids, are of all ranks' samples."""

# --- layers -----------------------------------------------------------------------------------------------------------


def inputs(images: tf.Tensor) -> tf.Tensor:
    """uint8 [B, H, W] -> float64 [B, H, W, 1]."""
    return (tf.cast(images, tf.float64) * rules.SCALE - rules.SHIFT)[..., None]


def conv(x: tf.Tensor, kernel: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """Valid convolution with bias; see reference.conv."""
    return tf.transpose(_conv(tf.transpose(x, BATCH_LAST), kernel, bias), BATCH_LAST)


def dense(x: tf.Tensor, kernel: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """[B, I], [I, O], [O] -> [B, O]; see reference.dense."""
    return tf.transpose(_conv(tf.transpose(x)[:, None, None], kernel[None, None], bias)[:, 0, 0])


@tf.custom_gradient
def _conv(x: tf.Tensor, kernel: tf.Tensor, bias: tf.Tensor):
    height, width, inputs, outputs = kernel.shape
    terms = height * width * inputs + 1
    most = exponent(x, (0, 1, 2))
    rounded, ones = _inputs(x, most, terms)
    weights, biases = _weights(kernel, bias, terms)

    def gradients(gradient: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        terms = height * width * outputs
        each = exponent(gradient, (0, 1, 2))
        weights, _ = _weights(kernel, bias, terms)
        x_gradient = spread(round_to_grid(gradient, each, operand_bits(terms)), weights)
        terms = gradient.shape[1] * gradient.shape[2] * gradient.shape[3] * ranks.size
        e, x_e = ranks.maximum(*(tf.reduce_max(found, 3, keepdims=True) for found in (each, most)))
        whole = round_to_grid(gradient, e, operand_bits(terms))
        rounded, ones = _inputs(x, x_e, terms)
        bias_gradient = tf.reduce_sum(whole * ones, (1, 2, 3))
        kernel_gradient, bias_gradient = ranks.total(correlate_with(rounded, whole), bias_gradient)
        return x_gradient, to_state(kernel_gradient), to_state(bias_gradient)

    return correlate(rounded, weights) + ones * biases[:, None, None, None], gradients


def _inputs(x: tf.Tensor, e: tf.Tensor, terms: int) -> tuple[tf.Tensor, tf.Tensor]:
    e = tf.maximum(e, 1)
    bits = operand_bits(terms)
    return round_to_grid(x, e, bits), round_to_grid(tf.ones_like(e, tf.float64), e, bits)


def _weights(kernel: tf.Tensor, bias: tf.Tensor, terms: int) -> tuple[tf.Tensor, tf.Tensor]:
    kernel, bias = tf.cast(kernel, tf.float64), tf.cast(bias, tf.float64)
    e = tf.maximum(tf.reshape(exponent(kernel, (0, 1, 2, 3)), (1,)), exponent(bias, (0,)))
    bits = operand_bits(terms)
    return round_to_grid(kernel, e, bits), round_to_grid(bias, e, bits)


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


# --- loss -------------------------------------------------------------------------------------------------------------


@tf.custom_gradient
def softmax_cross_entropy(logits: tf.Tensor, labels: tf.Tensor):
    """The loss of each sample, float64 [B], of logits [B, N] and labels int32 [B]; see reference."""
    classes = logits.shape[1]
    coarse, fine = map(tf.constant, rules.exp_tables())
    distance = tf.reduce_max(logits, 1, keepdims=True) - logits
    steps = tf.cast(tf.round(tf.minimum(distance, rules.EXP_END) * 2.0**rules.EXP_BITS), tf.int64)
    steps = tf.minimum(steps, 2 ** (2 * rules.EXP_SPLIT) - 1)
    size = 2**rules.EXP_SPLIT
    product = tf.gather(coarse, steps // size) * tf.gather(fine, steps % size)
    powers = tf.round(product * 2.0**rules.SUM_BITS) * 2.0**-rules.SUM_BITS
    total = tf.reduce_sum(powers, 1, keepdims=True)
    own = tf.one_hot(labels, classes, dtype=tf.float64)
    shares = tf.round(powers * (1 / total) * 2.0**rules.SUM_BITS) * 2.0**-rules.SUM_BITS
    own_gradient = shares - own

    coarse, fine = map(tf.constant, rules.log_tables(classes))
    index = tf.floor(total * 2.0**rules.LOG_COARSE_BITS)
    ratio = total / (index * 2.0**-rules.LOG_COARSE_BITS)
    rest = tf.cast(tf.round((ratio - 1) * 2.0**rules.LOG_FINE_BITS), tf.int64)
    log_total = tf.gather(coarse, tf.cast(index, tf.int64) - 2**rules.LOG_COARSE_BITS) + tf.gather(fine, rest)
    on_grid = tf.round(distance * 2.0**rules.LOSS_BITS) * 2.0**-rules.LOSS_BITS

    def gradients(gradient: tf.Tensor) -> tuple[tf.Tensor, None]:
        return gradient[:, None] * own_gradient, None

    return log_total[:, 0] + tf.reduce_sum(own * on_grid, 1), gradients


def mean_loss(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """The mean over the batch, float64: an exact sum, times 1 / B."""
    loss = total_loss(logits, labels)
    (everywhere,) = ranks.total(tf.stop_gradient(loss))
    loss += tf.stop_gradient(everywhere - loss)  # sums of losses are exact
    return loss * (1.0 / (labels.shape[0] * ranks.size))


def total_loss(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """The sum over the batch, float64, exact."""
    return tf.reduce_sum(softmax_cross_entropy(logits, labels))
