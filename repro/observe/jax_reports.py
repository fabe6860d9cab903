"""An operation of JAX that hands arrays of a program to a function of Python, and changes none.

`jax.debug.callback` would call it for each element of a `vmap`, and again where `jax.checkpoint` computes twice. This one
hands over an array with the mapped axis first, once, and in the program's order, also in loops and from one call of a
compiled program to the next.
"""

import functools
import sys
from typing import Any


@functools.cache
def _primitive() -> Any:
    """The operation. Its name is the one of JAX's callbacks, which portable numerics know."""
    core, effects = sys.modules["jax._src.core"], {sys.modules["jax._src.debugging"].ordered_debug_effect}
    batching, mlir = sys.modules["jax._src.interpreters.batching"], sys.modules["jax._src.interpreters.mlir"]
    partial_eval = sys.modules["jax._src.interpreters.partial_eval"]
    made = core.Primitive("debug_callback")
    made.multiple_results = True
    made.def_impl(_now)
    made.def_effectful_abstract_eval(lambda *avals, receive: ([], effects))
    sys.modules["jax._src.interpreters.ad"].primitive_jvps[made] = _differentiated
    batching.primitive_batchers[made] = _mapped
    partial_eval.partial_eval_jaxpr_custom_rules[made] = _once
    mlir.register_lowering(made, mlir.lower_fun(_in_program, multiple_results=True))
    return made


def report(receive: Any, arrays: list[Any]) -> None:
    """Calls `receive` with NumPy's or JAX's view of the arrays: now, or each time that the traced program comes by.

    It must return nothing, raise nothing, and call nothing of JAX.
    """
    _primitive().bind(*arrays, receive=receive)


def is_report(equation: Any) -> bool:
    return equation.primitive is _primitive()


def _now(*arrays: Any, receive: Any) -> list[Any]:
    receive(*arrays)
    return []


def _in_program(*arrays: Any, receive: Any) -> list[Any]:
    sys.modules["jax"].debug.callback(receive, *arrays, ordered=True)
    return []


def _differentiated(primals: Any, tangents: Any, **params: Any) -> Any:
    return _primitive().bind(*primals, **params), []


def _mapped(arrays: Any, axes: Any, **params: Any) -> Any:
    moved = [array if axis is None else _axis_first(array, axis) for array, axis in zip(arrays, axes)]
    return _primitive().bind(*moved, **params), []


def _axis_first(array: Any, axis: int) -> Any:
    order = [axis, *(place for place in range(array.ndim) if place != axis)]
    return sys.modules["jax"].lax.transpose(array, order)


def _once(saveable: Any, unknown: Any, instantiated: Any, equation: Any) -> Any:
    """Where JAX splits a checkpointed function: in the part that is computed first, if all arrays are known there."""
    if any(unknown):
        return None, equation, [], [], [each for each, has in zip(equation.invars, instantiated) if not has]
    return equation, None, [], [], []
