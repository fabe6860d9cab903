"""Portable numerics in TensorFlow.

`functional` has functions of tensors, `layers` and `optim` are Keras's. `enable` switches on portable numerics for any
program of this process. `self_check` chooses the matmul backend, and refuses a device with other bits.
"""

from importlib import import_module
from typing import Any

PARTS = ("functional", "layers", "optim")
MODE = ("RefusedError", "disable", "enable", "summary")


def __getattr__(name: str) -> Any:
    """Imports what is asked for."""
    home = f"{__package__}.library.tensorflow"
    if name in PARTS:
        return import_module(f"{home}.{name}")
    if name in MODE:
        return getattr(import_module(f"{__package__}.modes.tensorflow"), name)
    if name == "self_check":
        return import_module(f"{__package__}.backends.checks.tensorflow").self_check
    raise AttributeError(f"module {__name__} has no attribute {name}")
