"""Types of numbers: computed in float32 or float64, rounded where JAX rounds."""

from jax import Array
from jax import numpy as jnp


def as_float32(x: Array) -> Array:
    """Halves as float32, which holds them; float64 as it is."""
    return x if x.dtype == jnp.float64 else x.astype(jnp.float32)
