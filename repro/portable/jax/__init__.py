"""Portable numerics in JAX: `functional` has functions of arrays, `layers` Flax' modules, `optim` optimizers."""
