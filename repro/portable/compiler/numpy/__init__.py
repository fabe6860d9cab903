"""Compiles definitions over NumPy's arrays, for TensorFlow's mode."""
