"""Threads that execute kernels on NumPy's arrays."""
