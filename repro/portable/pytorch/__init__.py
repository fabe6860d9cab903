"""Portable numerics in PyTorch: the same bits on any device, with any number of threads, as in JAX and TensorFlow.

    import repro.portable.pytorch as portable

    model = portable.convert(model)  # or built of portable.Linear, portable.ReLU, ...
    optimizer = portable.optim.AdamW(model.parameters())

`functional` has torch.nn.functional's functions, this package torch.nn's modules, `optim` torch.optim's optimizers.
"""

from repro.portable.pytorch import functional, optim
from repro.portable.pytorch.convert import convert
from repro.portable.pytorch.modules import (
    GELU,
    AdaptiveAvgPool2d,
    Add,
    AvgPool2d,
    BatchNorm1d,
    BatchNorm2d,
    Conv2d,
    CrossEntropyLoss,
    Dropout,
    Dropout2d,
    Embedding,
    GroupNorm,
    LayerNorm,
    Linear,
    MaxPool2d,
    MSELoss,
    MultiheadAttention,
    Portable,
    ReLU,
    RMSNorm,
    Sigmoid,
    SiLU,
    Softmax,
    Tanh,
    number_dropouts,
)  # fmt: skip

__all__ = [
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
    "MSELoss",
    "MaxPool2d",
    "MultiheadAttention",
    "Portable",
    "RMSNorm",
    "ReLU",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Tanh",
    "convert",
    "functional",
    "number_dropouts",
    "optim",
]  # fmt: skip
