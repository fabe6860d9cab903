"""The self-check of portable numerics in TensorFlow: see repro/portable/checks.py."""

from functools import partial

import tensorflow as tf

from repro.portable import checks, rules
from repro.portable.tensorflow.convolution import BATCH_LAST, correlate, correlate_with, spread
from repro.portable.tensorflow.grids import double, exponent, round_to_grid, to_state
from repro.portable.tensorflow.operations import softmax_cross_entropy
from repro.portable.tensorflow.optimizers import Adam, Sgd


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


def _optimizers(given: dict[str, tuple[tf.Tensor, ...]]) -> "tuple[Sgd, Adam]":
    """Each with one weight, before the step that is checked."""
    weight, *slots, _ = given["sgd"]
    sgd = Sgd(checks.SGD, {"w": tf.Variable(weight)})
    for variable, value in zip(sgd.slots.values(), slots, strict=True):
        variable.assign(value)
    weight, *slots, _ = given["adam"]
    adam = Adam(checks.ADAM, {"w": tf.Variable(weight)})
    for variable, value in zip(adam.slots.values(), [*slots, float(checks.ADAM_COUNT)], strict=True):
        variable.assign(value)
    return sgd, adam


def _operations(sgd: "Sgd", adam: "Adam", given: dict[str, tuple[tf.Tensor, ...]]) -> dict[str, tuple[tf.Tensor, ...]]:
    (rounding,), (maximum,), (grid,), (logits, labels) = (
        given[name] for name in ("rounding", "maximum", "grid", "loss")
    )
    with tf.GradientTape() as tape:
        tape.watch(logits)
        loss = softmax_cross_entropy(logits, labels)
    for name, optimizer in (("sgd", sgd), ("adam", adam)):
        optimizer.update({"w": given[name][-1]})
    return {
        "rounding": (double(to_state(rounding * checks.FACTOR)) * checks.FACTOR,),
        "maximum": (tf.reduce_max(double(to_state(maximum * checks.FACTOR)), 1),),
        "grid": (round_to_grid(grid, exponent(grid, (1,)), rules.BITS),),
        "loss": (loss, tape.gradient(loss, logits)),
        "sgd": tuple(map(tf.identity, [sgd.weights["w"], *sgd.slots.values()])),
        "adam": tuple(map(tf.identity, [adam.weights["w"], *list(adam.slots.values())[:2]])),
    }
