"""Refusal of primitives without a portable form."""

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from jax._src import core, source_info_util
from jax._src.interpreters import mlir

from repro.portable.modes.common.refusal import ONCE, RefusedError, is_library, program_line, refused

REMEDIES = {
    "fft": "transform frames that overlap",
    "rng_": "use jax.random with threefry2x32 keys, which is its default",
    "pure_callback": "compute it with jax.numpy",
    "io_callback": "load the data before the step, and pass them to it",
    "pallas_call": "use the same function of jax.numpy or jax.nn",
    "call_exported": "call the function that was exported",
    "ffi_call": "use the same function of jax.numpy or jax.nn",
    "reduce": "use jnp.sum, max, min or prod",
    "reduce_window": "use reduce_window with lax.add, max or min",
    "ragged_dot": "use jnp.matmul with a mask",
    "scaled_": "multiply in bfloat16",
    **dict.fromkeys(("cholesky_update", "eig", "schur", "hessenberg", "householder", "tridiagonal"), ONCE),
}
"""Portable equivalents, by how the names of primitives begin."""


def refuse(name: str, why: str, remedy: str, avals: Sequence[Any], eqn: Any = None) -> RefusedError:
    """The error that says so, in one line."""
    arrays = (each for each in avals if isinstance(each, core.ShapedArray))
    values = (f"{each.dtype} {list(each.shape)}" for each in arrays)
    return refused(name, values, _line(eqn) or program_line(), why, remedy, REMEDIES)


def _line(eqn: Any) -> str:
    """The line where the program traced an equation, or called JAX's function that holds it; "" if unknown."""
    nearest = ""
    for each in _around(eqn):
        traceback = each.source_info.traceback
        frames = list(source_info_util.user_frames(traceback)) if traceback is not None else []
        own = next((frame for frame in frames if not is_library(frame.file_name)), None)
        if own is not None:
            return f"{own.file_name}:{own.start_line}"
        if frames and not nearest:
            nearest = f"{frames[0].file_name}:{frames[0].start_line}"
    return nearest


def _around(eqn: Any) -> Iterator[Any]:
    """An equation, and those within which JAX lowers it: the callers' local variables hold them."""
    if eqn is not None:
        yield eqn
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") == mlir.__name__ and frame.f_locals.get("eqn") not in (None, eqn):
            yield frame.f_locals["eqn"]
        frame = frame.f_back
