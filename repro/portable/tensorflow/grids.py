"""Grids, and the float32 state, in TensorFlow: see docs/portable.md."""

import tensorflow as tf

from repro.portable import rules
from repro.run import float32


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
    bits = tf.bitcast(tf.where(tf.abs(x) < float32.TINY, tf.constant(0.0, tf.float64), x), tf.int64)
    last = tf.bitwise.bitwise_and(tf.bitwise.right_shift(bits, tf.constant(DROPPED, tf.int64)), 1)
    rounded = tf.bitwise.bitwise_and(bits + (2 ** (DROPPED - 1) - 1) + last, -(2**DROPPED))  # half to even
    return tf.cast(tf.bitcast(rounded, tf.float64), tf.float32)


DROPPED = rules.SIGNIFICAND - 24  # bits of a float64 that a float32 has no place for


def double(x: tf.Tensor) -> tf.Tensor:
    """The same numbers in float64."""
    return tf.cast(x, tf.float64)
