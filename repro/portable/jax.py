"""Portable numerics in JAX.

`functional` has functions of arrays, `layers` Flax's modules, `optim` optimizers. `enable` switches on portable numerics
for any program of this process. `self_check` chooses the matmul backend, and refuses a
device with other bits.
"""

from importlib import import_module
from typing import Any

PARTS = ("functional", "layers", "optim")
MODE = ("RefusedError", "disable", "enable", "summary")


def __getattr__(name: str) -> Any:
    """Imports what is asked for."""
    home = f"{__package__}.library.jax"
    if name in PARTS:
        return import_module(f"{home}.{name}")
    if name in MODE:
        return getattr(import_module(f"{__package__}.modes.jax"), name)
    if name == "self_check":
        return import_module(f"{__package__}.backends.checks.jax").self_check
    raise AttributeError(f"module {__name__} has no attribute {name}")
