"""The library for JAX: users import it as repro.portable.jax."""
