"""Portable numerics in PyTorch: the same bits on any device, with any number of threads, as in JAX and TensorFlow.

    import repro.portable.pytorch as portable

    model = torch.nn.Sequential(portable.Linear(784, 50), portable.ReLU(), portable.Linear(50, 10))

`functional` has torch.nn.functional's functions, this package torch.nn's modules.
"""

from repro.portable.pytorch import functional
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
    "RMSNorm",
    "ReLU",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Tanh",
    "functional",
    "number_dropouts",
]  # fmt: skip
