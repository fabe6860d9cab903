"""Registry of definitions and of names of operations."""

import importlib
from functools import cache

import tensorflow as tf
from tensorflow.core.framework import op_def_pb2
from tensorflow.python.client import pywrap_tf_session
from tensorflow.python.framework import op_def_registry

from repro.portable.modes.common.refusal import unknown_operation

DEFINITIONS = (
    "products",
    "sums",
    "functions",
    "softmax",
    "convolution",
    "normalization",
    "pooling",
    "interpolation",
    "scaling",
    "scatter",
    "linalg",
    "images",
    "random",
    "candidates",
    "conversions",
    "collectives",
    "optimizers",
    "complexes",
    "fourier",
)
"""The files of operations/ that define operations."""


@cache
def load() -> None:
    """Imports the definitions."""
    for file in DEFINITIONS:
        importlib.import_module(
            f"{__package__.removesuffix('dispatcher')}operations.{file}"
        )  # `repro portable` loads it under a private name


def checked(names: frozenset[str]) -> frozenset[str]:
    """UsageError for a name that is no operation's."""
    for name in sorted(names):
        if op_def_registry.get(name) is None:
            raise unknown_operation(name, f"TensorFlow {tf.__version__}", [each.name for each in _operations()])
    return names


def _operations() -> list:
    operations = op_def_pb2.OpList()
    operations.ParseFromString(pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList()))
    return list(operations.op)
