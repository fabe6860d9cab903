"""Refusal of operations without a portable form."""

import json
import sys
import sysconfig
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from types import FrameType

import torch
from torch import Tensor

PACKAGE = str(Path(__file__).parents[3]) + "/"
LIBRARIES = tuple({sysconfig.get_path(name) + "/" for name in ("stdlib", "platstdlib", "purelib", "platlib")})
INSTALLED = ("/site-packages/", "/dist-packages/")

ONCE = "compute it once, outside of the training, and load its result"
REMEDIES = {
    "fft": "multiply by matrices of cosines and sines",
    "linalg": ONCE,
    "cholesky": ONCE,
    "geqrf": ONCE,
    "ormqr": ONCE,
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


class RefusedError(RuntimeError):
    """An operation has no portable form: its name, the line of the program that called it, and what to do."""


def refuse(operation: str, why: str, remedy: str = "", tensors: Iterable[Tensor] = ()) -> RefusedError:
    """The error that says so, in one line."""
    name = allowed_name(operation)
    remedy = remedy or next((text for begin, text in REMEDIES.items() if name.startswith(begin)), "")
    allowed = f"let it through with --allow {name}, in a script with enable(allow={json.dumps([name])})"
    values = ", ".join(f"{str(x.dtype).removeprefix('torch.')} {list(x.shape)}" for x in islice(tensors, 3))
    what = f"{name} of {values}" if values else name
    return RefusedError(f"portable numerics: {what} at {place()}: {why}; {remedy and f'{remedy}, or '}{allowed}")


def allowed_name(full: str) -> str:
    """The name by which a user lets an operation through: `linalg_svd` of `aten::_linalg_svd.U`."""
    return full.removeprefix("aten::").partition(".")[0].strip("_")


# --- where ------------------------------------------------------------------------------------------------------------


def place() -> str:
    """File and line of the innermost frame that is the program's own; in a backward pass its node of autograd, too."""
    line = _line(sys._getframe(1))
    node = torch._C._current_autograd_node()
    if node is None:
        return line or "an unknown line"
    called = f"in {node.name()} of backward()"
    forward = [text for text in node.metadata.get("traceback_", ()) if not _is_library(text.partition('"')[2])]
    if forward:  # anomaly mode holds it
        file, number = forward[-1].partition('"')[2].split('", line ')
        called += f" for {file}:{number.partition(',')[0]}"
    return f"{line}, {called}" if line else called


def _line(frame: FrameType | None) -> str:
    """The line of the program, or else that of the nearest library."""
    nearest = ""
    while frame is not None:
        file = frame.f_code.co_filename
        generated = file.startswith("<") and frame.f_globals.get("__name__") != "__main__"
        if not generated and not file.startswith(PACKAGE):
            nearest = nearest or f"{file}:{frame.f_lineno}"
            if not _is_library(file):
                return f"{file}:{frame.f_lineno}"
        frame = frame.f_back
    return nearest


def _is_library(file: str) -> bool:
    return file.startswith((PACKAGE, *LIBRARIES)) or any(part in file for part in INSTALLED)
