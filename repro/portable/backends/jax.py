"""JAX's arithmetic, as a backend.

JAX must have float64: jax.config.update("jax_enable_x64", True).
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax import Array, lax
from jax import numpy as jnp

from repro.portable import kernels
from repro.portable.backends import xla
from repro.portable.backends.correlation import jax as convolution
from repro.portable.definitions.defaults import Defaults
from repro.portable.definitions.ranks import AXIS
from repro.portable.numbers.constants import TINY

if kernels.available:
    from repro.portable.kernels import jax as ffi

LEAST_MATERIALIZED = 2**10
"""Numbers that are sooner read from memory than computed again."""


class JAX(Defaults):
    """JAX on any device, in any mode: eager or compiled."""

    # --- numbers ------------------------------------------------------------------------------------------------------

    @staticmethod
    def cast(x: Array, dtype: Any) -> Array:
        return x.astype(dtype)

    @staticmethod
    def r32(x: Array) -> Array:
        rounded = lax.reduce_precision(x, 8, 23)  # where float64 follows, XLA may drop a conversion, but not this
        return jnp.where(jnp.abs(rounded) < TINY, 0.0, rounded).astype(jnp.float32)

    @staticmethod
    def rint(x: Array) -> Array:
        return lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)

    floor, sqrt = staticmethod(jnp.floor), staticmethod(jnp.sqrt)
    where, clip = staticmethod(jnp.where), staticmethod(jnp.clip)

    @staticmethod
    def pattern(x: Array) -> Array:
        return lax.bitcast_convert_type(x, jnp.int64 if x.dtype == jnp.float64 else jnp.int32)

    @staticmethod
    def number(pattern: Array) -> Array:
        return lax.bitcast_convert_type(pattern, jnp.float64 if pattern.dtype == jnp.int64 else jnp.float32)

    # --- sums and products --------------------------------------------------------------------------------------------

    @staticmethod
    def sum(x: Array, axes: tuple[int, ...]) -> Array:
        return x.astype(jnp.float64).sum(axes, keepdims=True)

    @staticmethod
    def largest(x: Array, axes: tuple[int, ...]) -> Array:
        return x.max(axes, keepdims=True)

    operands = xla.operands

    matmul, rounded_matmul = xla.matmul, xla.rounded_matmul
    convolve, convolve_with = xla.convolve, xla.convolve_with
    convolve_back, rounded_convolve = xla.convolve_back, xla.rounded_convolve
    rounded_convolve_back = xla.rounded_convolve_back

    # --- shapes -------------------------------------------------------------------------------------------------------

    reshape, stack, broadcast_to = staticmethod(jnp.reshape), staticmethod(jnp.stack), staticmethod(jnp.broadcast_to)
    permute, concatenate = staticmethod(jnp.transpose), staticmethod(jnp.concatenate)

    @staticmethod
    def pad(x: Array, edges: Sequence[tuple[int, int]], value: float = 0.0) -> Array:
        return jnp.pad(x, edges, constant_values=value)

    # --- tables, places -----------------------------------------------------------------------------------------------

    @staticmethod
    def tables(like: Array, made: Callable, *arguments) -> list[Array]:
        return [jnp.asarray(table) for table in made(*arguments)]

    @staticmethod
    def take(table: Array, index: Array) -> Array:
        return table.at[index].get(mode="promise_in_bounds")

    @staticmethod
    def add_at(index: Array, x: Array, rows: int) -> Array:
        return jnp.zeros((rows, x.shape[1]), jnp.float64).at[index].add(x.astype(jnp.float64))

    @staticmethod
    def largest_at(index: Array, x: Array, rows: int) -> Array:
        return jnp.zeros((rows, x.shape[1]), x.dtype).at[index].max(x)

    @staticmethod
    def counting(like: Array, size: int) -> Array:
        return jnp.arange(size, dtype=jnp.int64)

    # --- matrices, step by step ---------------------------------------------------------------------------------------

    @staticmethod
    def at(x: Array, place: Array, axis: int) -> Array:
        return lax.dynamic_index_in_dim(x, place, axis)

    @staticmethod
    def take_along(x: Array, index: Array, axis: int) -> Array:
        return jnp.take_along_axis(x, index, axis)

    @staticmethod
    def repeat(count: int, step: Callable, state):
        return lax.fori_loop(0, count, step, state) if count else state  # XLA traces a step that it does not take

    @staticmethod
    def repeat_while(going: Callable, step: Callable, state):
        return lax.while_loop(going, step, state)

    @staticmethod
    def argsort(x: Array) -> Array:
        return jnp.argsort(x, -1)

    # --- ranks --------------------------------------------------------------------------------------------------------

    def of_rank(self, x: Array) -> Array:
        if self.ranks.size == 1:
            return x
        parts = x.reshape(self.ranks.size, -1, *x.shape[1:])
        return lax.dynamic_index_in_dim(parts, lax.axis_index(AXIS), keepdims=False)

    # --- under XLA ----------------------------------------------------------------------------------------------------

    def calls_kernels(self) -> bool:
        return self.engine == "int16"

    @staticmethod
    def call(*given) -> Array:
        return ffi.call(*given)

    @staticmethod
    def product_of_int8(a: Array, b: Array) -> Array:
        return jnp.matmul(a, b, preferred_element_type=jnp.int32)

    correlate, correlate_with = staticmethod(convolution.correlate), staticmethod(convolution.correlate_with)
    spread = staticmethod(convolution.spread)

    def materialized(self, arrays):
        """Arrays, in nested tuples, that XLA has to hold in memory where products are calls of kernels.

        It would compute those again for each operation that needs them.
        """
        if not self.calls_kernels():
            return arrays
        return jax.tree.map(lambda x: ffi.materialized(x) if _large(x) else x, arrays)


def _large(x: Array) -> bool:
    return x.dtype == jnp.float32 and x.size >= LEAST_MATERIALIZED


Backend = JAX()
