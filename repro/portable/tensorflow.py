"""Portable numerics in TensorFlow: the operations of reference.py, with gradients, on any device.

Images are [B, H, W, C] and kernels [h, w, I, O], as TensorFlow has them; activations are float64, weights float32.
"""

import tensorflow as tf

from repro import layout
from repro.config import Params
from repro.portable import rules
from repro.portable.rules import operand_bits
from repro.ranks import ALONE

ranks = ALONE
"""Who shares the batch; the trainer sets it. Sums over samples, and their grids, are of all ranks' samples."""

# --- grids ----------------------------------------------------------------------------------------------------------


def exponent(x: tf.Tensor, axes: tuple[int, ...]) -> tf.Tensor:
    """The e with 2^(e-1) <= max|x| < 2^e over the axes, int64, kept as axes of size 1."""
    patterns = tf.reduce_max(tf.bitcast(tf.abs(x), tf.int64), axes, keepdims=True)
    return tf.bitwise.right_shift(patterns, tf.constant(52, tf.int64)) - 1022


def round_to_grid(x: tf.Tensor, e: tf.Tensor, bits: int) -> tf.Tensor:
    """x rounded, half to even, to a multiple of 2^(e - bits); NaN where e is above LIMIT."""
    safe = tf.clip_by_value(e, -rules.LIMIT, rules.LIMIT)
    back = tf.where(e > rules.LIMIT, tf.constant(float("nan"), tf.float64), power_of_two(safe - bits))
    return tf.round(x * power_of_two(bits - safe)) * back


def power_of_two(e: tf.Tensor) -> tf.Tensor:
    """2^e for int64 e in the normal range, made of its bit pattern."""
    return tf.bitcast(tf.bitwise.left_shift(e + 1023, tf.constant(52, tf.int64)), tf.float64)


def to_state(x: tf.Tensor) -> tf.Tensor:
    """Rounded once to float32; magnitudes below 2^-100, and -0, become +0."""
    return tf.cast(tf.where(tf.abs(x) < rules.TINY, tf.constant(0.0, tf.float64), x), tf.float32)


# --- layers ---------------------------------------------------------------------------------------------------------


def inputs(images: tf.Tensor) -> tf.Tensor:
    """uint8 [B, H, W] -> float64 [B, H, W, 1]."""
    return (tf.cast(images, tf.float64) * rules.SCALE - rules.SHIFT)[..., None]


@tf.custom_gradient
def conv(x: tf.Tensor, kernel: tf.Tensor, bias: tf.Tensor):
    """Valid convolution with bias; see reference.conv."""
    height, width, inputs, outputs = kernel.shape
    terms = height * width * inputs + 1
    rounded, ones = _inputs(x, exponent(x, (1, 2, 3)), terms)
    weights, biases = _weights(kernel, bias, terms)

    def gradients(gradient: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        terms = height * width * outputs
        each = round_to_grid(gradient, exponent(gradient, (1, 2, 3)), operand_bits(terms))
        weights, _ = _weights(kernel, bias, terms)
        x_gradient = tf.raw_ops.Conv2DBackpropInput(
            input_sizes=tf.shape(x), filter=weights, out_backprop=each, strides=[1, 1, 1, 1], padding="VALID"
        )
        terms = gradient.shape[0] * gradient.shape[1] * gradient.shape[2] * ranks.size
        e, x_e = ranks.maximum(exponent(gradient, (0, 1, 2, 3)), exponent(x, (0, 1, 2, 3)))
        whole = round_to_grid(gradient, e, operand_bits(terms))
        rounded, ones = _inputs(x, x_e, terms)
        kernel_gradient = tf.raw_ops.Conv2DBackpropFilter(
            input=rounded, filter_sizes=kernel.shape, out_backprop=whole, strides=[1, 1, 1, 1], padding="VALID"
        )
        bias_gradient = tf.reduce_sum(whole * ones, (0, 1, 2))
        kernel_gradient, bias_gradient = ranks.total(kernel_gradient, bias_gradient)
        return x_gradient, to_state(kernel_gradient), to_state(bias_gradient)

    return tf.nn.conv2d(rounded, weights, 1, "VALID") + ones * biases, gradients


def dense(x: tf.Tensor, kernel: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """[B, I], [I, O], [O] -> [B, O]; see reference.dense."""
    return conv(x[:, None, None, :], kernel[None, None], bias)[:, 0, 0]


def _inputs(x: tf.Tensor, e: tf.Tensor, terms: int) -> tuple[tf.Tensor, tf.Tensor]:
    e = tf.maximum(e, 1)
    bits = operand_bits(terms)
    return round_to_grid(x, e, bits), round_to_grid(tf.ones_like(e, tf.float64), e, bits)


def _weights(kernel: tf.Tensor, bias: tf.Tensor, terms: int) -> tuple[tf.Tensor, tf.Tensor]:
    kernel, bias = tf.cast(kernel, tf.float64), tf.cast(bias, tf.float64)
    e = tf.maximum(tf.reshape(exponent(kernel, (0, 1, 2, 3)), (1,)), exponent(bias, (0,)))
    bits = operand_bits(terms)
    return round_to_grid(kernel, e, bits), round_to_grid(bias, e, bits)


@tf.function(jit_compile=True)
def max_pool(x: tf.Tensor) -> tf.Tensor:
    """Maximum of each 2 x 2 window; the gradient goes to the first of equals."""
    _, height, width, channels = x.shape
    x = tf.reshape(x, (-1, height // 2, 2, width // 2, 2, channels))
    return _first_max(_first_max(x[:, :, 0, :, 0], x[:, :, 0, :, 1]), _first_max(x[:, :, 1, :, 0], x[:, :, 1, :, 1]))


def _first_max(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    return tf.where(a >= b, a, b)


# --- loss -----------------------------------------------------------------------------------------------------------


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


# --- optimizers -----------------------------------------------------------------------------------------------------


def optimizer(params: Params, weights: dict[str, tf.Variable]) -> "_Sgd | _Adam":
    """SGD with momentum, or Adam; see reference.sgd and reference.adam."""
    return (_Adam if params.optimizer == "adam" else _Sgd)(params, weights)


class _Sgd:
    def __init__(self, params: Params, weights: dict[str, tf.Variable]) -> None:
        self.rate, self.decay = rules.as_float32(params.learning_rate), rules.as_float32(params.momentum)
        self.weights = weights
        self.slots = {layout.slot("momentum", name): tf.Variable(tf.zeros_like(w)) for name, w in weights.items()}

    def update(self, gradients: dict[str, tf.Tensor]) -> None:
        for name, gradient in gradients.items():
            weight, momentum = self.weights[name], self.slots[layout.slot("momentum", name)]
            momentum.assign(to_state(self.decay * _double(momentum) + _double(gradient)))
            weight.assign(to_state(_double(weight) - self.rate * _double(momentum)))


class _Adam:
    def __init__(self, params: Params, weights: dict[str, tf.Variable]) -> None:
        self.rate = rules.as_float32(params.learning_rate)
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
        correction = corrections[tf.minimum(tf.cast(count, tf.int64), len(corrections) - 1)]
        count.assign_add(1.0)
        for name, gradient in gradients.items():
            weight = self.weights[name]
            first, second = (self.slots[layout.slot(slot, name)] for slot in layout.SLOTS["adam"])
            g = _double(gradient)
            first.assign(to_state(rules.BETA1 * _double(first) + (1 - rules.BETA1) * g))
            square = _double(to_state(g * g))
            second.assign(to_state(rules.BETA2 * _double(second) + (1 - rules.BETA2) * square))
            root = tf.sqrt(_double(second) * correction[1])
            step = to_state(_double(first) * correction[0] / (root + rules.EPSILON))
            weight.assign(to_state(_double(weight) - self.rate * _double(step)))


def _double(x: tf.Tensor) -> tf.Tensor:
    return tf.cast(x, tf.float64)


# --- self-check -----------------------------------------------------------------------------------------------------


def self_check() -> None:
    """ReproError if this library's convolution or its gradients are not exact on integers, on this device."""
    images, kernel, expected, kernel_gradient, images_gradient = rules.check_case()
    x, k = tf.constant(images, tf.float64), tf.constant(kernel, tf.float64)
    y = tf.nn.conv2d(x, k, 1, "VALID")
    rules.check("TensorFlow's conv2d", y.numpy(), expected)
    dk = tf.raw_ops.Conv2DBackpropFilter(
        input=x, filter_sizes=k.shape, out_backprop=tf.sign(y), strides=[1, 1, 1, 1], padding="VALID"
    )
    rules.check("TensorFlow's Conv2DBackpropFilter", dk.numpy(), kernel_gradient)
    dx = tf.raw_ops.Conv2DBackpropInput(
        input_sizes=x.shape, filter=k, out_backprop=tf.sign(y), strides=[1, 1, 1, 1], padding="VALID"
    )
    rules.check("TensorFlow's Conv2DBackpropInput", dx.numpy(), images_gradient)
