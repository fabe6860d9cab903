"""TensorFlow's arithmetic, as a backend."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf

from repro.portable import kernels
from repro.portable.backends import xla
from repro.portable.backends.correlation import tensorflow as convolution
from repro.portable.definitions.grids import grids
from repro.portable.definitions.ranks import SINGLE_PROCESS
from repro.portable.definitions.xp import XlaBackend, method
from repro.portable.numbers.constants import SMALLEST, TINY

if kernels.available:
    from repro.portable.kernels import tensorflow as ffi

DROPPED = 53 - 24  # bits of a float64 that a float32 has no place for
LEAST_MATERIALIZED = 2**10
"""Numbers that are sooner read from memory than computed again."""


class Backend:
    """On any device, in any mode: eager, in a graph, or compiled by XLA. Shapes must be known."""

    nan, inf = math.nan, math.inf
    ranks = SINGLE_PROCESS
    engine = "float64"

    # --- numbers ------------------------------------------------------------------------------------------------------

    @staticmethod
    def f64(x: tf.Tensor) -> tf.Tensor:
        return tf.cast(x, tf.float64)

    @staticmethod
    def f32(x: tf.Tensor) -> tf.Tensor:
        return tf.cast(x, tf.float32)

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
    def integer(x: tf.Tensor) -> tf.Tensor:
        return tf.cast(x, tf.int32)

    @staticmethod
    def int8(x: tf.Tensor) -> tf.Tensor:
        return tf.cast(x, tf.int8)

    @staticmethod
    def int16(x: tf.Tensor) -> tf.Tensor:
        return tf.cast(x, tf.int16)

    @staticmethod
    def shift_right(x: tf.Tensor, bits: int) -> tf.Tensor:
        return tf.bitwise.right_shift(x, tf.constant(bits, x.dtype))

    @staticmethod
    def pattern(x: tf.Tensor) -> tf.Tensor:
        return tf.bitcast(x, tf.int64)

    @staticmethod
    def number(pattern: tf.Tensor) -> tf.Tensor:
        return tf.bitcast(pattern, tf.float64)

    # --- grids --------------------------------------------------------------------------------------------------------

    @staticmethod
    def exponent_above(x: tf.Tensor, axes: tuple[int, ...]) -> tf.Tensor:
        most = tf.reduce_max(tf.bitcast(x, tf.int32) & 0x7FFFFFFF, axes, keepdims=True)
        return tf.clip_by_value(Backend.shift_right(most, 23) - 126, SMALLEST, 128)

    @staticmethod
    def power(e: tf.Tensor) -> tf.Tensor:
        return tf.bitcast(tf.bitwise.left_shift(e + 127, tf.constant(23)), tf.float32)

    @staticmethod
    def exponent(x: tf.Tensor) -> tf.Tensor:
        return tf.cast(Backend.shift_right(tf.bitcast(x, tf.int64), 52) - 1023, tf.int32)

    @staticmethod
    def power_of_two(e: tf.Tensor) -> tf.Tensor:
        return tf.bitcast(tf.bitwise.left_shift(tf.cast(e, tf.int64) + 1023, tf.constant(52, tf.int64)), tf.float64)

    grids = method(grids)

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

    @staticmethod
    def multiply_add(a: tf.Tensor, b: tf.Tensor, c: tf.Tensor) -> tf.Tensor:
        return a * b + c

    operands = method(xla.operands)

    @staticmethod
    def operand_like(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
        return tf.cast(a, b.dtype)

    matmul, rounded_matmul = method(xla.matmul), method(xla.rounded_matmul)
    convolve, convolve_with = method(xla.convolve), method(xla.convolve_with)
    convolve_back = method(xla.convolve_back)

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
    def one_hot(index: tf.Tensor, classes: int) -> tf.Tensor:
        return tf.one_hot(index, classes, dtype=tf.float64)

    @staticmethod
    def causal(like: tf.Tensor, rows: int, columns: int) -> np.ndarray:
        return np.tril(np.ones((rows, columns), bool), columns - rows)

    @staticmethod
    def counting(like: tf.Tensor, size: int) -> tf.Tensor:
        return tf.range(size, dtype=tf.int64)

    # --- matrices, step by step ---------------------------------------------------------------------------------------

    @staticmethod
    def at(x: tf.Tensor, place: int, axis: int) -> tf.Tensor:
        return x[..., place : place + 1] if axis == -1 else x[..., place : place + 1, :]

    @staticmethod
    def take_along(x: tf.Tensor, index: tf.Tensor, axis: int) -> tf.Tensor:
        return tf.experimental.numpy.take_along_axis(x, index, axis)

    @staticmethod
    def repeat(count: int, step: Callable, state):
        for number in range(count):
            state = step(number, state)
        return state

    @staticmethod
    def repeat_while(going: Callable, step: Callable, state):
        while going(state):
            state = step(state)
        return state

    @staticmethod
    def argsort(x: tf.Tensor) -> tf.Tensor:
        return tf.argsort(x, -1, stable=True)

    # --- ranks --------------------------------------------------------------------------------------------------------

    @classmethod
    def total(cls, x: tf.Tensor) -> tf.Tensor:
        return cls.ranks.total(x)[0]

    @classmethod
    def of_rank(cls, x: tf.Tensor) -> tf.Tensor:
        return tf.split(x, cls.ranks.size)[cls.ranks.rank]

    # --- under XLA ----------------------------------------------------------------------------------------------------

    @classmethod
    def calls_kernels(cls) -> bool:
        return cls.engine == "int16" and ffi.compiled()

    @staticmethod
    def call(*given) -> tf.Tensor:
        return ffi.call(*given)

    @staticmethod
    def product_of_int8(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
        return tf.linalg.matmul(a, b, output_type=tf.int32)

    correlate, correlate_with = staticmethod(convolution.correlate), staticmethod(convolution.correlate_with)
    spread = staticmethod(convolution.spread)

    @classmethod
    def materialized(cls, found):
        """Tensors, in nested tuples, that XLA has to hold in memory where products are calls of kernels.

        It would compute those again for each operation that needs them.
        """
        if not cls.calls_kernels():
            return found
        return tf.nest.map_structure(lambda x: ffi.materialized(x) if _large(x) else x, found)


def _large(x: tf.Tensor | None) -> bool:
    return x is not None and x.dtype == tf.float32 and x.shape.num_elements() >= LEAST_MATERIALIZED


if TYPE_CHECKING:
    _: XlaBackend = Backend
