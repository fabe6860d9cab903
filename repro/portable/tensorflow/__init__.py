"""Portable numerics in TensorFlow.

`functional` has functions of tensors, `layers` and `optim` are Keras's. `enable` switches on portable numerics for any
program of this process.
"""

from importlib import import_module
from typing import Any

MODE = ("RefusedError", "disable", "enable", "summary")


def __getattr__(name: str) -> Any:
    if name in MODE:
        return getattr(import_module(f"{__name__}.mode"), name)
    raise AttributeError(f"module {__name__} has no attribute {name}")
