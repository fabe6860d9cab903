"""Portable numerics in JAX.

`functional` has functions of arrays, `layers` Flax's modules, `optim` optimizers. `enable` switches on portable numerics
for any program of this process.
"""

from importlib import import_module
from typing import Any

MODE = ("RefusedError", "disable", "enable", "summary")


def __getattr__(name: str) -> Any:
    if name in MODE:
        return getattr(import_module(f"{__name__}.mode"), name)
    raise AttributeError(f"module {__name__} has no attribute {name}")
