"""Types of numbers: computed in float32 or float64, rounded where JAX rounds."""

from jax import Array
from jax import numpy as jnp


def as_float32(x: Array) -> Array:
    """Halves as float32, which holds them; float64 as it is."""
    return x if x.dtype == jnp.float64 else x.astype(jnp.float32)


def of_one_type(a: Array, b: Array) -> tuple[Array, Array]:
    """Two arrays as float32, or as float64 where one of them is."""
    dtype = jnp.float64 if jnp.float64 in (a.dtype, b.dtype) else jnp.float32
    return a.astype(dtype), b.astype(dtype)
