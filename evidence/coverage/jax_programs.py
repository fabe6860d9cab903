"""Programs of JAX alone."""

from evidence.coverage import jax_operations, jax_transformations

__all__ = ["jax_operations", "jax_transformations"]
