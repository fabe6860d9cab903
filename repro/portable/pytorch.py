"""Portable numerics in PyTorch.

The same bits on any device, with any number of threads, as in JAX and TensorFlow:

    import repro.portable.pytorch as portable

    model = portable.convert(model)  # or built of portable.Linear, portable.ReLU, ...
    optimizer = portable.optim.AdamW(model.parameters())

`functional` has torch.nn.functional's functions, this package torch.nn's modules, `optim` torch.optim's optimizers.
"""

from importlib import import_module
from typing import Any

MODULES = (
    "GELU",
    "AdaptiveAvgPool2d",
    "Add",
    "AvgPool2d",
    "BatchNorm1d",
    "BatchNorm2d",
    "Conv2d",
    "CrossEntropyLoss",
    "Dropout",
    "Dropout2d",
    "Embedding",
    "GroupNorm",
    "LayerNorm",
    "Linear",
    "MaxPool2d",
    "MSELoss",
    "MultiheadAttention",
    "Portable",
    "ReLU",
    "RMSNorm",
    "Sigmoid",
    "SiLU",
    "Softmax",
    "Tanh",
    "number_dropouts",
)
PARTS = ("functional", "optim")
MODE = ("RefusedError", "disable", "enable", "summary")
__all__ = ["convert", "self_check", *PARTS, *MODE, *MODULES]


def __getattr__(name: str) -> Any:
    """Imports what is asked for: torch.optim's classes import PyTorch's compiler, which takes long."""
    home = f"{__package__}.library.pytorch"
    if name in PARTS:
        return import_module(f"{home}.{name}")
    if name in MODE:
        return getattr(import_module(f"{__package__}.modes.pytorch"), name)
    if name == "self_check":
        return import_module(f"{__package__}.backends.checks.pytorch").self_check
    if name in __all__:
        return getattr(import_module(f"{home}.{'conversion' if name == 'convert' else 'modules'}"), name)
    raise AttributeError(f"module {__name__} has no attribute {name}")
