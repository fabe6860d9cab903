"""Threads that execute kernels on NumPy's arrays, and an operation of TensorFlow's graphs that does so without Python."""
