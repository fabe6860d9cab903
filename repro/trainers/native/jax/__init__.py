"""Fast parts of mnist_jax.py."""
