"""The self-check of a backend, and the choice of its matmul backend."""
