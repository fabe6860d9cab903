"""Programs of JAX alone."""

from programs.coverage import jax_operations, jax_transformations

__all__ = ["jax_operations", "jax_transformations"]
