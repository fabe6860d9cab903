"""Which definitions there are, and names of operations."""

import difflib
import importlib
from functools import cache

import tensorflow as tf
from tensorflow.core.framework import op_def_pb2
from tensorflow.python.client import pywrap_tf_session
from tensorflow.python.framework import op_def_registry

from repro.errors import UsageError

DEFINITIONS = (
    "products",
    "sums",
    "functions",
    "softmax",
    "convolution",
    "normalization",
    "pooling",
    "interpolation",
    "scatter",
    "linalg",
    "images",
    "random",
    "collectives",
    "optimizers",
)
"""The files of this folder that define operations."""


@cache
def load() -> None:
    """Imports the definitions."""
    for file in DEFINITIONS:
        importlib.import_module(f"{__package__}.{file}")  # `repro portable` loads it under a private name


def checked(names: frozenset[str]) -> frozenset[str]:
    """UsageError for a name that is no operation's."""
    for name in sorted(names):
        if op_def_registry.get(name) is None:
            known = [each.name for each in _operations()]
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else "write it as the error has it that refuses it"
            raise UsageError(f"portable: --allow {name}: TensorFlow {tf.__version__} has no such operation; {hint}")
    return names


def _operations() -> list:
    found = op_def_pb2.OpList()
    found.ParseFromString(pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList()))
    return list(found.op)
