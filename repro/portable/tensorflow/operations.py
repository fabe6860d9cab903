"""Portable numerics in TensorFlow: the operations of reference.py, with gradients, on any device.

Images are [B, H, W, C] and kernels [h, w, I, O], as TensorFlow has them; activations are float64, weights float32.
Within the layers the batch comes last, [C, H, W, B], so that loops run over whole vectors. Compile the step around them
with tf.function(jit_compile=True): XLA joins what TensorFlow would do one by one, and twice as fast.
"""

from functools import partial

import numpy as np
import tensorflow as tf

from repro.portable import checks, rules
from repro.portable.rules import operand_bits
from repro.portable.tensorflow.convolution import correlate, correlate_with, spread
from repro.run import layout
from repro.run.config import Params
from repro.run.ranks import ALONE

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
    # Where float64 follows, XLA may drop a conversion, on GPUs and in some fusions on CPUs, but no operation on bits.
    # TensorFlow has JAX' reduce_precision, too, but in compiled code alone.
    bits = tf.bitcast(tf.where(tf.abs(x) < rules.TINY, tf.constant(0.0, tf.float64), x), tf.int64)
    last = tf.bitwise.bitwise_and(tf.bitwise.right_shift(bits, tf.constant(DROPPED, tf.int64)), 1)
    rounded = tf.bitwise.bitwise_and(bits + (2 ** (DROPPED - 1) - 1) + last, -(2**DROPPED))  # half to even
    return tf.cast(tf.bitcast(rounded, tf.float64), tf.float32)


DROPPED = rules.SIGNIFICAND - 24  # bits of a float64 that a float32 has no place for


# --- layers ---------------------------------------------------------------------------------------------------------


def inputs(images: tf.Tensor) -> tf.Tensor:
    """uint8 [B, H, W] -> float64 [B, H, W, 1]."""
    return (tf.cast(images, tf.float64) * rules.SCALE - rules.SHIFT)[..., None]


def conv(x: tf.Tensor, kernel: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """Valid convolution with bias; see reference.conv."""
    return tf.transpose(_conv(tf.transpose(x, BATCH_LAST), kernel, bias), BATCH_LAST)


def dense(x: tf.Tensor, kernel: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """[B, I], [I, O], [O] -> [B, O]; see reference.dense."""
    return tf.transpose(_conv(tf.transpose(x)[:, None, None], kernel[None, None], bias)[:, 0, 0])


BATCH_LAST = (3, 1, 2, 0)  # [B, H, W, C] -> [C, H, W, B], and back


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
        at = tf.minimum(tf.cast(count, tf.int64), corrections.shape[1] - 1)
        correction = tf.gather(corrections, at, axis=1)
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
    """ReproError if this library, compiled or not, computes anything of checks.py with other bits, on this device."""
    images, kernel, *_ = checks.products()
    x, k = tf.constant(images.transpose(BATCH_LAST), tf.float64), tf.constant(kernel, tf.float64)
    given = {name: tuple(map(tf.constant, arrays)) for name, arrays in checks.inputs().items()}
    for compiled in (False, True):
        name = "XLA in TensorFlow" if compiled else "TensorFlow"
        y, dk, dx = tf.function(_products, jit_compile=compiled)(x, k)
        found_products = (tf.transpose(y, BATCH_LAST).numpy(), dk.numpy(), tf.transpose(dx, BATCH_LAST).numpy())
        checks.check_products(f"the matrix product of {name}", *found_products)
        operations = partial(_operations, *_optimizers(given))
        checks.check_operations(name, tf.function(operations, jit_compile=compiled)(given))


def _products(x: tf.Tensor, kernel: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    y = correlate(x, kernel)
    return y, correlate_with(x, tf.sign(y)), spread(tf.sign(y), kernel)


def _optimizers(given: dict[str, tuple[tf.Tensor, ...]]) -> "tuple[_Sgd, _Adam]":
    """Each with one weight, before the step that is checked."""
    weight, *slots, _ = given["sgd"]
    sgd = _Sgd(checks.SGD, {"w": tf.Variable(weight)})
    for variable, value in zip(sgd.slots.values(), slots, strict=True):
        variable.assign(value)
    weight, *slots, _ = given["adam"]
    adam = _Adam(checks.ADAM, {"w": tf.Variable(weight)})
    for variable, value in zip(adam.slots.values(), [*slots, float(checks.ADAM_COUNT)], strict=True):
        variable.assign(value)
    return sgd, adam


def _operations(
    sgd: "_Sgd", adam: "_Adam", given: dict[str, tuple[tf.Tensor, ...]]
) -> dict[str, tuple[tf.Tensor, ...]]:
    (rounding,), (maximum,), (grid,), (logits, labels) = (
        given[name] for name in ("rounding", "maximum", "grid", "loss")
    )
    with tf.GradientTape() as tape:
        tape.watch(logits)
        loss = softmax_cross_entropy(logits, labels)
    for name, optimizer in (("sgd", sgd), ("adam", adam)):
        optimizer.update({"w": given[name][-1]})
    return {
        "rounding": (_double(to_state(rounding * checks.FACTOR)) * checks.FACTOR,),
        "maximum": (tf.reduce_max(_double(to_state(maximum * checks.FACTOR)), 1),),
        "grid": (round_to_grid(grid, exponent(grid, (1,)), rules.BITS),),
        "loss": (loss, tape.gradient(loss, logits)),
        "sgd": tuple(map(tf.identity, [sgd.weights["w"], *sgd.slots.values()])),
        "adam": tuple(map(tf.identity, [adam.weights["w"], *list(adam.slots.values())[:2]])),
    }
