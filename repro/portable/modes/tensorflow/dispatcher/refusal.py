"""Refusal of operations without a portable form."""

from collections.abc import Iterable
from typing import Any

from tensorflow.python.util import tf_stack

from repro.portable.modes.common.refusal import ONCE, RefusedError, is_library, refused

REMEDIES = {
    "FFT": "transform frames that overlap",
    "IFFT": "transform frames that overlap",
    "RFFT": "transform frames that overlap",
    "IRFFT": "transform frames that overlap",
    "Complex": "compute with the real and imaginary parts",
    "Matrix": ONCE,
    "Eig": ONCE,
    "Sparse": "use a dense tensor",
    "CSRSparse": "use a dense tensor",
    "Quantize": "train in float32 or bfloat16",
    "Uniform": "train in float32 or bfloat16",
    "Xla": "call it outside of XLA",
    "SymbolicGradient": "use tf.GradientTape",
    "CTC": "compute the loss by keras.ops",
}
"""Portable equivalents, by how the names of operations begin."""


def refuse(
    name: str, why: str = "it has no portable form", remedy: str = "", values: Iterable[Any] = ()
) -> RefusedError:
    """The error that says so, in one line. `values` are tensors or arrays."""
    shown = (f"{each.dtype.name} {_shape(each)}" for each in values)
    error = refused(name, shown, place(), why, remedy, REMEDIES)
    error.ag_pass_through = True  # type: ignore[attr-defined]  # AutoGraph and Keras make errors of their own of others
    error._keras_call_info_injected = True  # type: ignore[attr-defined]
    return error


def _shape(tensor: Any) -> str:
    shape = tensor.shape
    if isinstance(shape, tuple):
        return str([*shape])
    return "of unknown shape" if shape.rank is None else str(shape.as_list())


def place() -> str:
    """File and line of the innermost frame that is the program's own; AutoGraph's code stands for the program's."""
    nearest = ""
    for frame in reversed(list(tf_stack.extract_stack())):
        file, number = frame.filename, frame.lineno
        if file.startswith("<"):
            continue
        nearest = nearest or f"{file}:{number}"
        if not is_library(file):
            return f"{file}:{number}"
    return nearest
