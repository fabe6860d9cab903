"""TensorFlow's arithmetic, as a backend."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from repro.portable import kernels
from repro.portable.backends import xla
from repro.portable.backends.correlation import tensorflow as convolution
from repro.portable.definitions.defaults import Defaults
from repro.portable.numbers.constants import TINY

if kernels.available:
    from repro.portable.kernels import tensorflow as ffi

DROPPED = 53 - 24  # bits of a float64 that a float32 has no place for
LEAST_MATERIALIZED = 2**10
"""Numbers that are sooner read from memory than computed again."""


class TensorFlow(Defaults):
    """TensorFlow on any device, in any mode: eager, in a graph, or compiled by XLA. Shapes must be known."""

    # --- numbers ------------------------------------------------------------------------------------------------------

    @staticmethod
    def cast(x: tf.Tensor, dtype: Any) -> tf.Tensor:
        return tf.cast(x, dtype)

    @staticmethod
    def r32(x: tf.Tensor) -> tf.Tensor:
        # Where float64 follows, XLA may drop a conversion, but no operation on bits. TensorFlow has JAX'
        # reduce_precision, too, but in compiled code alone.
        if x.dtype == tf.float64:
            bits = tf.bitcast(x, tf.int64)
            last = tf.bitwise.right_shift(bits, tf.constant(DROPPED, tf.int64)) & 1
            rounded = tf.bitcast((bits + (2 ** (DROPPED - 1) - 1) + last) & -(2**DROPPED), tf.float64)  # half to even
            x = tf.where(tf.abs(x) < math.inf, rounded, x)  # the bits of a NaN may not be added to
        return tf.cast(tf.where(tf.abs(x) < TINY, tf.zeros_like(x), x), tf.float32)

    rint, floor, sqrt = staticmethod(tf.round), staticmethod(tf.floor), staticmethod(tf.sqrt)

    @staticmethod
    def where(condition: tf.Tensor, a, b) -> tf.Tensor:
        like = next((each for each in (a, b) if tf.is_tensor(each)), None)
        return tf.where(
            condition, *(tf.convert_to_tensor(each, like.dtype if like is not None else None) for each in (a, b))
        )

    @staticmethod
    def clip(x: tf.Tensor, low: float, high: float) -> tf.Tensor:
        return tf.clip_by_value(x, tf.constant(low, x.dtype), tf.constant(high, x.dtype))

    @staticmethod
    def shift_left(x: tf.Tensor, bits: int) -> tf.Tensor:
        return tf.bitwise.left_shift(x, tf.constant(bits, x.dtype))

    @staticmethod
    def shift_right(x: tf.Tensor, bits: int) -> tf.Tensor:
        return tf.bitwise.right_shift(x, tf.constant(bits, x.dtype))

    @staticmethod
    def pattern(x: tf.Tensor) -> tf.Tensor:
        return tf.bitcast(x, tf.int64 if x.dtype == tf.float64 else tf.int32)

    @staticmethod
    def number(pattern: tf.Tensor) -> tf.Tensor:
        return tf.bitcast(pattern, tf.float64 if pattern.dtype == tf.int64 else tf.float32)

    # --- sums and products --------------------------------------------------------------------------------------------

    @staticmethod
    def sum(x: tf.Tensor, axes: tuple[int, ...]) -> tf.Tensor:
        return tf.reduce_sum(tf.cast(x, tf.float64), axes, keepdims=True)

    @staticmethod
    def largest(x: tf.Tensor, axes: tuple[int, ...]) -> tf.Tensor:
        return tf.reduce_max(x, axes, keepdims=True)

    @staticmethod
    def maximum_of(x: tf.Tensor) -> tf.Tensor:
        return tf.reduce_max(x, -1, keepdims=True)

    operands = xla.operands

    matmul, rounded_matmul = xla.matmul, xla.rounded_matmul
    convolve, convolve_with = xla.convolve, xla.convolve_with
    convolve_back, rounded_convolve = xla.convolve_back, xla.rounded_convolve
    rounded_convolve_back = xla.rounded_convolve_back

    # --- shapes -------------------------------------------------------------------------------------------------------

    reshape, stack, broadcast_to = staticmethod(tf.reshape), staticmethod(tf.stack), staticmethod(tf.broadcast_to)
    permute, concatenate = staticmethod(tf.transpose), staticmethod(tf.concat)

    @staticmethod
    def transpose(x: tf.Tensor) -> tf.Tensor:
        return tf.linalg.matrix_transpose(x)

    @staticmethod
    def pad(x: tf.Tensor, edges: Sequence[tuple[int, int]], value: float = 0.0) -> tf.Tensor:
        return tf.pad(x, edges, constant_values=tf.constant(value, x.dtype))

    # --- tables, places -----------------------------------------------------------------------------------------------

    @staticmethod
    def tables(like: tf.Tensor, made: Callable, *arguments) -> list[tf.Tensor]:
        return [tf.constant(table) for table in made(*arguments)]

    take, take_rows = staticmethod(tf.gather), staticmethod(tf.gather)

    @staticmethod
    def add_at(index: tf.Tensor, x: tf.Tensor, rows: int) -> tf.Tensor:
        return tf.math.unsorted_segment_sum(tf.cast(x, tf.float64), index, rows)

    @staticmethod
    def largest_at(index: tf.Tensor, x: tf.Tensor, rows: int) -> tf.Tensor:
        return tf.maximum(tf.math.unsorted_segment_max(x, index, rows), 0)

    @staticmethod
    def one_hot(index: tf.Tensor, classes: int) -> tf.Tensor:
        return tf.one_hot(index, classes, dtype=tf.float64)

    @staticmethod
    def counting(like: tf.Tensor, size: int) -> tf.Tensor:
        return tf.range(size, dtype=tf.int64)

    @staticmethod
    def take_along(x: tf.Tensor, index: tf.Tensor, axis: int) -> tf.Tensor:
        return tf.experimental.numpy.take_along_axis(x, index, axis)

    @staticmethod
    def argsort(x: tf.Tensor) -> tf.Tensor:
        return tf.argsort(x, -1, stable=True)

    # --- under XLA ----------------------------------------------------------------------------------------------------

    def calls_kernels(self) -> bool:
        return self.engine == "int16" and ffi.compiled()

    @staticmethod
    def call(*given) -> tf.Tensor:
        return ffi.call(*given)

    @staticmethod
    def product_of_int8(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
        return tf.linalg.matmul(a, b, output_type=tf.int32)

    correlate, correlate_with = staticmethod(convolution.correlate), staticmethod(convolution.correlate_with)
    spread = staticmethod(convolution.spread)

    def materialized(self, arrays):
        """Tensors, in nested tuples, that XLA has to hold in memory where products are calls of kernels.

        It would compute those again for each operation that needs them.
        """
        if not self.calls_kernels():
            return arrays
        return tf.nest.map_structure(lambda x: ffi.materialized(x) if _large(x) else x, arrays)


def _large(x: tf.Tensor | None) -> bool:
    return x is not None and x.dtype == tf.float32 and x.shape.num_elements() >= LEAST_MATERIALIZED


Backend = TensorFlow()
