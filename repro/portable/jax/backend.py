"""JAX' arithmetic, as the definitions in repro.portable.operations ask for it.

JAX must be told to have float64 at all: jax.config.update("jax_enable_x64", True).
"""

import math

import jax
import numpy as np
from jax import Array, lax
from jax import numpy as jnp

from repro.native.jax.convolution import correlate, correlate_with, spread
from repro.portable import kernels
from repro.portable.constants import SMALLEST, TINY
from repro.portable.operations import convolution, slices
from repro.portable.operations.convolution import OUTPUTS_FIRST, OUTPUTS_LAST, plain
from repro.portable.operations.grids import check_length, grids
from repro.run.ranks import AXIS, SINGLE_PROCESS

if kernels.available:
    from repro.portable.jax import ffi
    from repro.portable.kernels import calls, products
    from repro.portable.kernels.convolution import How

LEAST_KEPT = 2**10
"""Numbers that are sooner read from memory than computed again."""


class Backend:
    """On any device, in any mode: eager or compiled."""

    nan, inf = math.nan, math.inf
    ranks = SINGLE_PROCESS
    """Who shares the batch."""
    engine = "float64"
    """What exact products are made of: float64, or int8 or int16 with int32 sums. It changes no bit."""

    # --- numbers ------------------------------------------------------------------------------------------------------

    @staticmethod
    def f64(x: Array) -> Array:
        return x.astype(jnp.float64)

    @staticmethod
    def f32(x: Array) -> Array:
        """The same numbers, which float32 holds."""
        return x.astype(jnp.float32)

    @staticmethod
    def r32(x: Array) -> Array:
        """Rounded once to float32; then magnitudes below 2^-100, and -0, become +0."""
        rounded = lax.reduce_precision(x, 8, 23)  # where float64 follows, XLA may drop a conversion, but not this
        return jnp.where(jnp.abs(rounded) < TINY, 0.0, rounded).astype(jnp.float32)

    floor, sqrt, where, clip = (
        staticmethod(jnp.floor),
        staticmethod(jnp.sqrt),
        staticmethod(jnp.where),
        staticmethod(jnp.clip),
    )

    @staticmethod
    def rint(x: Array) -> Array:
        return lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)

    @staticmethod
    def integer(x: Array) -> Array:
        return x.astype(jnp.int32)

    @staticmethod
    def shift_right(x: Array, bits: int) -> Array:
        return x >> bits

    # --- grids --------------------------------------------------------------------------------------------------------

    @staticmethod
    def exponent_above(x: Array, axes: tuple[int, ...]) -> Array:
        """The least e >= -100 with |x| < 2^e along the axes, int32, axes of size 1; 128 from 2^127 on, and of NaN."""
        most = (lax.bitcast_convert_type(x, jnp.int32) & 0x7FFFFFFF).max(axes, keepdims=True)
        return jnp.clip((most >> 23) - 126, SMALLEST, 128)

    @staticmethod
    def power(e: Array) -> Array:
        """2^e, float32, for -126 <= e <= 127."""
        return lax.bitcast_convert_type((e + 127) << 23, jnp.float32)

    @staticmethod
    def exponent(x: Array) -> Array:
        """The e with 2^e <= x < 2^(e + 1) of a positive float64, int32."""
        return ((lax.bitcast_convert_type(x, jnp.int64) >> 52) - 1023).astype(jnp.int32)

    @staticmethod
    def power_of_two(e: Array) -> Array:
        """2^e, float64."""
        return lax.bitcast_convert_type((e.astype(jnp.int64) + 1023) << 52, jnp.float64)

    grids = classmethod(grids)

    # --- sums and products --------------------------------------------------------------------------------------------

    @staticmethod
    def multiply_add(a: Array, b: Array, c: Array) -> Array:
        """a b + c, of an exact product."""
        return a * b + c

    @classmethod
    def loops(cls) -> bool:
        """Whether products are calls of repro.portable.kernels, where they can be."""
        return cls.engine == "int16"

    @classmethod
    def operands(cls, a: Array, b: Array, work: int, groups: int = 1, layout: str = "") -> tuple[Array, Array]:
        """Two arrays of integers in the form that products take them in, for so many multiplications.

        Of a convolution images of this layout, and the weight.
        """
        if not cls.loops():
            return a, b
        if products.fit(a.shape, b.shape[0], layout):
            return a.astype(jnp.int16), b.astype(jnp.int16)
        return (cls.f64(a), cls.f64(b)) if layout else (a, b)

    @staticmethod
    def operand_like(a: Array, b: Array) -> Array:
        """An array of integers in the form that another has, see operands."""
        return a.astype(b.dtype)

    @staticmethod
    def sum(x: Array, axes: tuple[int, ...]) -> Array:
        """float64, of integers: exact."""
        return x.astype(jnp.float64).sum(axes, keepdims=True)

    @staticmethod
    def maximum_of(x: Array) -> Array:
        """Along the last axis, of size 1 then."""
        return x.max(-1, keepdims=True)

    @staticmethod
    def call(*given) -> Array:
        """What loops of repro.portable.kernels make of arrays."""
        return ffi.call(*given)

    @classmethod
    def matmul(cls, a: Array, b: Array) -> Array:
        """float64, of matrices of integers: exact."""
        if a.dtype == jnp.int16:
            return calls.multiply(cls, a, b)
        return slices.product(cls, a, b) if cls.engine == "int8" else cls.f64(a) @ cls.f64(b)

    @classmethod
    def rounded_matmul(cls, a: Array, b: Array, units: Array, plus: Array | None) -> Array:
        """float32, of matrices of int16: see grids.rounded_product."""
        return calls.multiply(cls, a, b, units, plus)

    @staticmethod
    def int8(x: Array) -> Array:
        return x.astype(jnp.int8)

    @staticmethod
    def product_of_int8(a: Array, b: Array) -> Array:
        """int32."""
        return jnp.matmul(a, b, preferred_element_type=jnp.int32)

    @classmethod
    def convolve(cls, q: Array, w: Array, stride, padding, dilation, groups: int, layout: str) -> Array:
        """See convolution.convolve: here, where it is plain and the batch is last, by one product."""
        if q.dtype != jnp.float32:
            return calls.convolve(cls, q, w, How(stride, padding, dilation, groups, layout))
        if cls.engine == "int8" or not plain(stride, padding, dilation, groups, layout):
            return convolution.convolve(cls, q, w, stride, padding, dilation, groups, layout)
        check_length(math.prod(w.shape[1:]))
        return correlate(cls.f64(q), cls.f64(w).transpose(OUTPUTS_LAST))

    @classmethod
    def convolve_with(cls, q: Array, g: Array, shape, stride, padding, dilation, groups: int, layout: str) -> Array:
        """See convolution.convolve_with."""
        if q.dtype != jnp.float32:
            return calls.convolve_with(cls, q, g, shape, How(stride, padding, dilation, groups, layout))
        if cls.engine == "int8" or not plain(stride, padding, dilation, groups, layout):
            return convolution.convolve_with(cls, q, g, shape, stride, padding, dilation, groups, layout)
        check_length(g[0].size * cls.ranks.size)
        return correlate_with(cls.f64(q), cls.f64(g)).transpose(OUTPUTS_FIRST)

    @classmethod
    def convolve_back(cls, g: Array, w: Array, image, stride, padding, dilation, groups: int, layout: str) -> Array:
        """See convolution.convolve_back."""
        if g.dtype != jnp.float32:
            if all(1 in pair for pair in zip(stride, dilation, strict=True)):
                return calls.convolve_back(cls, g, w, image, How(stride, padding, dilation, groups, layout))
            g, w = cls.f32(g), cls.f32(w)
        if cls.engine == "int8" or not plain(stride, padding, dilation, groups, layout):
            return convolution.convolve_back(cls, g, w, image, stride, padding, dilation, groups, layout)
        check_length(math.prod(w.shape[:3]))
        return spread(cls.f64(g), cls.f64(w).transpose(OUTPUTS_LAST))

    @classmethod
    def kept(cls, found):
        """Arrays, in nested tuples, that XLA has to keep in memory where products are calls of loops.

        It would compute those again for each operation that needs them.
        """
        if not cls.loops():
            return found
        return jax.tree.map(lambda x: ffi.kept(x) if x.dtype == jnp.float32 and x.size >= LEAST_KEPT else x, found)

    # --- shapes -------------------------------------------------------------------------------------------------------

    reshape, stack, broadcast_to = staticmethod(jnp.reshape), staticmethod(jnp.stack), staticmethod(jnp.broadcast_to)
    permute, concatenate = staticmethod(jnp.transpose), staticmethod(jnp.concatenate)

    @staticmethod
    def transpose(x: Array) -> Array:
        """The last two axes."""
        return jnp.swapaxes(x, -1, -2)

    @staticmethod
    def pad(x: Array, edges: tuple[tuple[int, int], ...], value: float = 0.0) -> Array:
        """With this value before and after, along each axis."""
        return jnp.pad(x, edges, constant_values=value)

    # --- tables, places -----------------------------------------------------------------------------------------------

    @staticmethod
    def tables(like: Array, made, *arguments) -> list[Array]:
        """Tables of repro.portable.tables."""
        return [jnp.asarray(table) for table in made(*arguments)]

    @staticmethod
    def take(table: Array, index: Array) -> Array:
        return table.at[index].get(mode="promise_in_bounds")

    @staticmethod
    def take_rows(table: Array, index: Array) -> Array:
        return table[index]

    @staticmethod
    def add_at(index: Array, x: Array, rows: int) -> Array:
        """float64 [rows, C]: rows of x, integers, added up by their index: exact."""
        return jnp.zeros((rows, x.shape[1]), jnp.float64).at[index].add(x.astype(jnp.float64))

    @staticmethod
    def one_hot(index: Array, classes: int) -> Array:
        return (jnp.arange(classes) == index[:, None]).astype(jnp.float64)

    @staticmethod
    def causal(like: Array, rows: int, columns: int) -> np.ndarray:
        """bool [rows, columns]: a row sees the columns up to its own, the last row all."""
        return np.tril(np.ones((rows, columns), bool), columns - rows)

    @staticmethod
    def counting(like: Array, size: int) -> Array:
        """0, 1, 2, ..., int64."""
        return jnp.arange(size, dtype=jnp.int64)

    # --- ranks --------------------------------------------------------------------------------------------------------

    @classmethod
    def total(cls, x: Array) -> Array:
        """The sum over all ranks, of exact sums."""
        return cls.ranks.total(x)[0]

    @classmethod
    def of_rank(cls, x: Array) -> Array:
        """This rank's part of what holds all samples, in order."""
        if cls.ranks.size == 1:
            return x
        parts = x.reshape(cls.ranks.size, -1, *x.shape[1:])
        return lax.dynamic_index_in_dim(parts, lax.axis_index(AXIS), keepdims=False)
