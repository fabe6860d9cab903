"""Refusal of operations without a portable form."""

from collections.abc import Iterable

import torch
from torch import Tensor

from repro.portable.modes.common.refusal import ONCE, RefusedError, is_library, program_line, refused

REMEDIES = {
    "fft": "transform frames that overlap",
    "linalg": ONCE,
    "cholesky": ONCE,
    "triangular_solve": ONCE,
    "sparse": "use a dense tensor",
    "to_sparse": "use a dense tensor",
    "nested": "use a padded tensor",
    "quantize": "train in float32 or bfloat16",
    "fake_quantize": "train in float32 or bfloat16",
    "quantized::": "compute in float32 or bfloat16",
    "scaled_mm": "multiply in bfloat16",
    "segment_reduce": "use index_add or scatter_reduce",
    "histogram": "use histc",
}
"""Portable equivalents, by how the names of operations begin."""


def refuse(operation: str, why: str, remedy: str = "", tensors: Iterable[Tensor] = ()) -> RefusedError:
    """The error that says so, in one line."""
    name = allowed_name(operation)
    values = (f"{str(x.dtype).removeprefix('torch.')} {list(x.shape)}" for x in tensors)
    return refused(name, values, place(), why, remedy, REMEDIES)


def allowed_name(full: str) -> str:
    """The name by which a user has an operation run natively: `linalg_svd` of `aten::_linalg_svd.U`."""
    return full.removeprefix("aten::").partition(".")[0].strip("_")


# --- where ------------------------------------------------------------------------------------------------------------


def place() -> str:
    """File and line of the innermost frame that is the program's own; in a backward pass its node of autograd, too."""
    line = program_line()
    node = torch._C._current_autograd_node()
    if node is None:
        return line
    called = f"in {node.name()} of backward()"
    forward = [text for text in node.metadata.get("traceback_", ()) if not is_library(text.partition('"')[2])]
    if forward:  # anomaly mode holds it
        file, number = forward[-1].partition('"')[2].split('", line ')
        called += f" for {file}:{number.partition(',')[0]}"
    return f"{line}, {called}" if line else called
