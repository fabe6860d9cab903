"""Grids, and the float32 state, in JAX: see docs/portable.md."""

from jax import Array, lax
from jax import numpy as jnp

from repro.portable import rules
from repro.run import float32


def exponent(x: Array, axes: tuple[int, ...]) -> Array:
    """The e with 2^(e-1) <= max|x| < 2^e over the axes, int64, kept as axes of size 1."""
    patterns = lax.bitcast_convert_type(jnp.abs(x), jnp.int64).max(axes, keepdims=True)
    return (patterns >> 52) - 1022


def round_to_grid(x: Array, e: Array, bits: int) -> Array:
    """x rounded, half to even, to a multiple of 2^(e - bits); NaN where e is above LIMIT."""
    safe = jnp.clip(e, -rules.LIMIT, rules.LIMIT)
    back = jnp.where(e > rules.LIMIT, jnp.nan, power_of_two(safe - bits))
    return lax.round(x * power_of_two(bits - safe), lax.RoundingMethod.TO_NEAREST_EVEN) * back


def power_of_two(e: Array) -> Array:
    """2^e for int64 e in the normal range, made of its bit pattern."""
    return lax.bitcast_convert_type((e + 1023) << 52, jnp.float64)


def to_state(x: Array) -> Array:
    """Rounded once to float32; magnitudes below 2^-100, and -0, become +0."""
    # Where float64 follows, XLA may drop a conversion, on GPUs and in some fusions on CPUs, but not this rounding.
    rounded = lax.reduce_precision(jnp.where(jnp.abs(x) < float32.TINY, 0.0, x), FLOAT32.nexp, FLOAT32.nmant)
    return rounded.astype(jnp.float32)


FLOAT32 = jnp.finfo(jnp.float32)


def double(x: Array) -> Array:
    """The same numbers in float64."""
    return x.astype(jnp.float64)
