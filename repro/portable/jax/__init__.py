"""Portable numerics in JAX."""
