"""Faults that `repro verify` plants in a resumed run, to see whether it would notice them.

README.md beside this file says how.

start        the start in a process, by REPRO_CONTROLS
controls     what a process does when a moment comes: save first values, describe its own, or put one part back
values       first values in files: numbers as JSON, arrays as bytes
generators   random generators of Python and NumPy
pytorch      parts of a PyTorch training
loaders      parts of PyTorch's loaders: the place in the data, the epoch, their generators
keras        parts of a Keras training
jax          parts of a JAX training
arrays       arrays of NumPy, as which both are read and written
"""
