"""Portable numerics in JAX.

`functional` has functions of arrays, `layers` Flax's modules, `optim` optimizers.
"""
