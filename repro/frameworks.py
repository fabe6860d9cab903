"""Frameworks: their names, modules, packages, flags."""

from typing import NamedTuple


class Framework(NamedTuple):
    """Facts of a framework that are known without importing it."""

    title: str
    """The name as its makers write it."""
    module: str
    """The module that a program imports."""
    packages: tuple[str, ...]
    """The installed packages whose version can change bits."""
    deterministic: dict[str, str]
    """Environment variables of strict determinism, read when a computation first needs them."""


FRAMEWORKS = {
    "pytorch": Framework(
        title="PyTorch",
        module="torch",
        packages=("torch", "torchvision"),
        deterministic={"CUBLAS_WORKSPACE_CONFIG": ":4096:8"},
    ),
    "tensorflow": Framework(
        title="TensorFlow",
        module="tensorflow",
        packages=("tensorflow", "keras"),
        deterministic={},
    ),
    "jax": Framework(
        title="JAX",
        module="jax",
        packages=("jax", "jaxlib", "flax", "optax", "grain"),
        # Autotuning may choose other kernels each time.
        deterministic={"XLA_FLAGS": "--xla_gpu_deterministic_ops=true --xla_gpu_autotune_level=0"},
    ),
}
"""Frameworks by the name of the task that trains in them, which is also the name of their environment in .venv."""
