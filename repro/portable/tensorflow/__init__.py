"""Portable numerics in TensorFlow."""
