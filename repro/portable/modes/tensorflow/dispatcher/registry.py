"""Registry of definitions and of names of operations."""

from functools import cache

import tensorflow as tf
from tensorflow.core.framework import op_def_pb2
from tensorflow.python.client import pywrap_tf_session
from tensorflow.python.framework import op_def_registry

from repro.portable.modes.common import loading
from repro.portable.modes.common.refusal import unknown_operation
from repro.portable.modes.tensorflow.dispatcher.dispatch import complex_definitions, definitions
from repro.portable.modes.tensorflow.dispatcher.exact import CONTROLLING, EXACT, NATIVE, REAL
from repro.portable.modes.tensorflow.dispatcher.holders import HOLDERS
from repro.portable.modes.tensorflow.dispatcher.kinds import COMPLEX, FLOATS, QUANTIZED, fixed_types, hides_types

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
    "sparse",
    "quantization",
    "morphology",
    "linalg",
    "images",
    "detection",
    "regions",
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
    loading.load(__package__, DEFINITIONS)


def checked(names: frozenset[str]) -> frozenset[str]:
    """UsageError for a name that is no operation's."""
    for name in sorted(names):
        if op_def_registry.get(name) is None:
            raise unknown_operation(name, f"TensorFlow {tf.__version__}", [each.name for each in operations()])
    return names


def kind_of(name: str) -> str:
    """What becomes of an operation, by its name."""
    load()
    if name in REAL:
        return "real"
    for kind, names in {"control": CONTROLLING, "holds": HOLDERS, "exact": EXACT}.items():
        if name in names:
            return kind
    if name in definitions:
        return "composed" if definitions[name].composed else "defined"
    if name in complex_definitions:
        return "defined"
    return "refused" if _may_compute(op_def_registry.get(name)) else "integers"


def _may_compute(operation: op_def_pb2.OpDef) -> bool:
    """True if an operation can have numbers that are not integers."""
    types = fixed_types(operation.name) | {each.type for each in operation.input_arg}
    for attribute in operation.attr:
        if attribute.type in ("type", "list(type)"):
            types |= set(attribute.allowed_values.list.type) or FLOATS
    return bool(types & (FLOATS | COMPLEX | QUANTIZED)) or hides_types(operation.name)


def operations() -> list[op_def_pb2.OpDef]:
    """Every operation that TensorFlow registers."""
    operations = op_def_pb2.OpList()
    operations.ParseFromString(pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList()))
    return [each for each in operations.op if each.name != NATIVE]
