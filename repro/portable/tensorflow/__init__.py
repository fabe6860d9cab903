"""Portable numerics in TensorFlow.

`functional` has functions of tensors, `layers` and `optim` are Keras's.
"""
