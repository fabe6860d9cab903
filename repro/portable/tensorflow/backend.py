"""TensorFlow's arithmetic, as the definitions in repro.portable.operations ask for it."""

import math

import numpy as np
import tensorflow as tf

from repro.native.tensorflow.convolution import correlate, correlate_with, spread
from repro.portable import kernels
from repro.portable.constants import SMALLEST, TINY
from repro.portable.operations import convolution, slices
from repro.portable.operations.convolution import OUTPUTS_FIRST, OUTPUTS_LAST, plain
from repro.portable.operations.grids import check_length, grids
from repro.run.ranks import SINGLE_PROCESS

if kernels.available:
    from repro.portable.kernels import calls, products
    from repro.portable.kernels.convolution import How
    from repro.portable.tensorflow import ffi

DROPPED = 53 - 24  # bits of a float64 that a float32 has no place for
LEAST_KEPT = 2**10
"""Numbers that are sooner read from memory than computed again."""


class Backend:
    """On any device, in any mode: eager, in a graph, or compiled by XLA. Shapes must be known."""

    nan, inf = math.nan, math.inf
    ranks = SINGLE_PROCESS
    """Who shares the batch."""
    engine = "float64"
    """What exact products are made of: float64, or int8 or int16 with int32 sums. It changes no bit."""

    # --- numbers ------------------------------------------------------------------------------------------------------

    @staticmethod
    def f64(x: tf.Tensor) -> tf.Tensor:
        return tf.cast(x, tf.float64)

    @staticmethod
    def f32(x: tf.Tensor) -> tf.Tensor:
        """The same numbers, which float32 holds."""
        return tf.cast(x, tf.float32)

    @staticmethod
    def r32(x: tf.Tensor) -> tf.Tensor:
        """Rounded once to float32; then magnitudes below 2^-100, and -0, become +0."""
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
    def shift_right(x: tf.Tensor, bits: int) -> tf.Tensor:
        return tf.bitwise.right_shift(x, tf.constant(bits, x.dtype))

    # --- grids --------------------------------------------------------------------------------------------------------

    @staticmethod
    def exponent_above(x: tf.Tensor, axes: tuple[int, ...]) -> tf.Tensor:
        """The least e >= -100 with |x| < 2^e along the axes, int32, axes of size 1; 128 from 2^127 on, and of NaN."""
        most = tf.reduce_max(tf.bitcast(x, tf.int32) & 0x7FFFFFFF, axes, keepdims=True)
        return tf.clip_by_value(Backend.shift_right(most, 23) - 126, SMALLEST, 128)

    @staticmethod
    def power(e: tf.Tensor) -> tf.Tensor:
        """2^e, float32, for -126 <= e <= 127."""
        return tf.bitcast(tf.bitwise.left_shift(e + 127, tf.constant(23)), tf.float32)

    @staticmethod
    def exponent(x: tf.Tensor) -> tf.Tensor:
        """The e with 2^e <= x < 2^(e + 1) of a positive float64, int32."""
        return tf.cast(Backend.shift_right(tf.bitcast(x, tf.int64), 52) - 1023, tf.int32)

    @staticmethod
    def power_of_two(e: tf.Tensor) -> tf.Tensor:
        """2^e, float64."""
        return tf.bitcast(tf.bitwise.left_shift(tf.cast(e, tf.int64) + 1023, tf.constant(52, tf.int64)), tf.float64)

    grids = classmethod(grids)

    # --- sums and products --------------------------------------------------------------------------------------------

    @staticmethod
    def multiply_add(a: tf.Tensor, b: tf.Tensor, c: tf.Tensor) -> tf.Tensor:
        """a b + c, of an exact product."""
        return a * b + c

    @classmethod
    def loops(cls) -> bool:
        """Whether products are calls of repro.portable.kernels, where they can be."""
        return cls.engine == "int16" and ffi.compiled()

    @classmethod
    def operands(
        cls, a: tf.Tensor, b: tf.Tensor, work: int, groups: int = 1, layout: str = ""
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Two arrays of integers in the form that products take them in, for so many multiplications.

        Of a convolution images of this layout, and the weight.
        """
        if not cls.loops():
            return a, b
        if products.fit(a.shape, b.shape[0], layout):
            return tf.cast(a, tf.int16), tf.cast(b, tf.int16)
        return (cls.f64(a), cls.f64(b)) if layout else (a, b)

    @staticmethod
    def operand_like(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
        """An array of integers in the form that another has, see operands."""
        return tf.cast(a, b.dtype)

    @staticmethod
    def sum(x: tf.Tensor, axes: tuple[int, ...]) -> tf.Tensor:
        """float64, of integers: exact."""
        return tf.reduce_sum(tf.cast(x, tf.float64), axes, keepdims=True)

    @staticmethod
    def maximum_of(x: tf.Tensor) -> tf.Tensor:
        """Along the last axis, of size 1 then."""
        return tf.reduce_max(x, -1, keepdims=True)

    @staticmethod
    def call(*given) -> tf.Tensor:
        """What loops of repro.portable.kernels make of arrays."""
        return ffi.call(*given)

    @classmethod
    def matmul(cls, a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
        """float64, of matrices of integers: exact."""
        if a.dtype == tf.int16:
            return calls.multiply(cls, a, b)
        return slices.product(cls, a, b) if cls.engine == "int8" else cls.f64(a) @ cls.f64(b)

    @classmethod
    def rounded_matmul(cls, a: tf.Tensor, b: tf.Tensor, units: tf.Tensor, plus: tf.Tensor | None) -> tf.Tensor:
        """float32, of matrices of int16: see grids.rounded_product."""
        return calls.multiply(cls, a, b, units, plus)

    @staticmethod
    def int8(x: tf.Tensor) -> tf.Tensor:
        return tf.cast(x, tf.int8)

    @staticmethod
    def product_of_int8(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
        """int32."""
        return tf.linalg.matmul(a, b, output_type=tf.int32)

    @classmethod
    def convolve(cls, q: tf.Tensor, w: tf.Tensor, stride, padding, dilation, groups: int, layout: str) -> tf.Tensor:
        """See convolution.convolve: here, where it is plain and the batch is last, by one product."""
        if q.dtype != tf.float32:
            return calls.convolve(cls, q, w, How(stride, padding, dilation, groups, layout))
        if cls.engine == "int8" or not plain(stride, padding, dilation, groups, layout):
            return convolution.convolve(cls, q, w, stride, padding, dilation, groups, layout)
        check_length(math.prod(w.shape[1:]))
        return correlate(cls.f64(q), tf.transpose(cls.f64(w), OUTPUTS_LAST))

    @classmethod
    def convolve_with(
        cls, q: tf.Tensor, g: tf.Tensor, shape, stride, padding, dilation, groups: int, layout: str
    ) -> tf.Tensor:
        """See convolution.convolve_with."""
        if q.dtype != tf.float32:
            return calls.convolve_with(cls, q, g, shape, How(stride, padding, dilation, groups, layout))
        if cls.engine == "int8" or not plain(stride, padding, dilation, groups, layout):
            return convolution.convolve_with(cls, q, g, shape, stride, padding, dilation, groups, layout)
        check_length(math.prod(g.shape[1:]) * cls.ranks.size)
        return tf.transpose(correlate_with(cls.f64(q), cls.f64(g)), OUTPUTS_FIRST)

    @classmethod
    def convolve_back(
        cls, g: tf.Tensor, w: tf.Tensor, image, stride, padding, dilation, groups: int, layout: str
    ) -> tf.Tensor:
        """See convolution.convolve_back."""
        if g.dtype != tf.float32:
            if all(1 in pair for pair in zip(stride, dilation, strict=True)):
                return calls.convolve_back(cls, g, w, image, How(stride, padding, dilation, groups, layout))
            g, w = cls.f32(g), cls.f32(w)
        if cls.engine == "int8" or not plain(stride, padding, dilation, groups, layout):
            return convolution.convolve_back(cls, g, w, image, stride, padding, dilation, groups, layout)
        check_length(math.prod(w.shape[:3]))
        return spread(cls.f64(g), tf.transpose(cls.f64(w), OUTPUTS_LAST))

    @classmethod
    def kept(cls, found):
        """Tensors, in nested tuples, that XLA has to keep in memory where products are calls of loops.

        It would compute those again for each operation that needs them.
        """
        if not cls.loops():
            return found
        return tf.nest.map_structure(lambda x: ffi.kept(x) if _large(x) else x, found)

    # --- shapes -------------------------------------------------------------------------------------------------------

    reshape, stack, broadcast_to = staticmethod(tf.reshape), staticmethod(tf.stack), staticmethod(tf.broadcast_to)
    permute, concatenate = staticmethod(tf.transpose), staticmethod(tf.concat)

    @staticmethod
    def transpose(x: tf.Tensor) -> tf.Tensor:
        """The last two axes."""
        return tf.linalg.matrix_transpose(x)

    @staticmethod
    def pad(x: tf.Tensor, edges: tuple[tuple[int, int], ...], value: float = 0.0) -> tf.Tensor:
        """With this value before and after, along each axis."""
        return tf.pad(x, edges, constant_values=tf.constant(value, x.dtype))

    # --- tables, places -----------------------------------------------------------------------------------------------

    @staticmethod
    def tables(like: tf.Tensor, made, *arguments) -> list[tf.Tensor]:
        """Tables of repro.portable.tables."""
        return [tf.constant(table) for table in made(*arguments)]

    take, take_rows = staticmethod(tf.gather), staticmethod(tf.gather)

    @staticmethod
    def add_at(index: tf.Tensor, x: tf.Tensor, rows: int) -> tf.Tensor:
        """float64 [rows, C]: rows of x, integers, added up by their index: exact."""
        return tf.math.unsorted_segment_sum(tf.cast(x, tf.float64), index, rows)

    @staticmethod
    def one_hot(index: tf.Tensor, classes: int) -> tf.Tensor:
        return tf.one_hot(index, classes, dtype=tf.float64)

    @staticmethod
    def causal(like: tf.Tensor, rows: int, columns: int) -> np.ndarray:
        """bool [rows, columns]: a row sees the columns up to its own, the last row all."""
        return np.tril(np.ones((rows, columns), bool), columns - rows)

    @staticmethod
    def counting(like: tf.Tensor, size: int) -> tf.Tensor:
        """0, 1, 2, ..., int64."""
        return tf.range(size, dtype=tf.int64)

    # --- ranks --------------------------------------------------------------------------------------------------------

    @classmethod
    def total(cls, x: tf.Tensor) -> tf.Tensor:
        """The sum over all ranks, of exact sums."""
        return cls.ranks.total(x)[0]

    @classmethod
    def of_rank(cls, x: tf.Tensor) -> tf.Tensor:
        """This rank's part of what holds all samples, in order."""
        return tf.split(x, cls.ranks.size)[cls.ranks.rank]


def _large(x: tf.Tensor | None) -> bool:
    return x is not None and x.dtype == tf.float32 and x.shape.num_elements() >= LEAST_KEPT
