"""Operations of TensorFlow, where its Python executes them.

All Python code, generated or not, executes an operation by one of two functions, which are replaced: the numbers of a
definition are computed at once. TensorFlow records the gradient as for its own operation. Graphs are in graphs.py.
"""

import ctypes
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tensorflow.python import pywrap_tfe
from tensorflow.python.eager import core, execute
from tensorflow.python.framework import constant_op, dtypes

from repro.portable.modes.common.precision import handed
from repro.portable.modes.tensorflow.dispatcher.exact import REAL, is_exact
from repro.portable.modes.tensorflow.dispatcher.kinds import (
    COMPLEX,
    COMPLEX_TYPES,
    FLOATS,
    INTEGERS,
    QUANTIZED,
    attribute_types,
    fixed_types,
    hides_types,
    type_attributes,
)
from repro.portable.modes.tensorflow.dispatcher.refusal import refuse

Function = Callable[..., Any]
Attributes = dict[str, Any]


@dataclass(frozen=True)
class Definition:
    """The replacement of an operation."""

    function: Function
    composed: bool
    """True if it calls other operations of TensorFlow, which are dispatched again; otherwise it takes and gives arrays."""
    reads: tuple[int, ...] | None = None
    """The arrays whose numbers it reads, if kernels compute all the rest; None if NumPy may compute."""


definitions: dict[str, Definition] = {}
"""Definitions by the names of operations."""
complex_definitions: dict[str, Definition] = {}
"""Definitions of complex numbers, likewise."""
counts: Counter[str] = Counter()
"""The number of portable calls of each operation."""
ran_natively: Counter[str] = Counter()
"""The number of native calls of each operation."""
allowed: set[str] = set()
"""Operations to run natively."""


class _Thread(threading.local):
    passing = False
    """True while operations are TensorFlow's own."""


thread = _Thread()


class Passing:
    """A context in which operations are TensorFlow's own."""

    def __enter__(self) -> None:
        self.before, thread.passing = thread.passing, True

    def __exit__(self, *_: object) -> None:
        thread.passing = self.before


def define(*names: str, reads: tuple[int, ...] | None = None) -> Callable[[Function], Function]:
    """Registers a function of attributes and arrays. `reads`: see Definition."""
    return _registration(definitions, names, composed=False, reads=reads)


def define_complex(*names: str) -> Callable[[Function], Function]:
    """Registers a function of attributes and arrays, some of them complex."""
    return _registration(complex_definitions, names, composed=False)


def compose(*names: str) -> Callable[[Function], Function]:
    """Registers a function of attributes and tensors that is made of other operations, and has no gradient."""
    return _registration(definitions, names, composed=True)


def _registration(
    table: dict[str, Definition], names: tuple[str, ...], composed: bool, reads: tuple[int, ...] | None = None
) -> Callable[[Function], Function]:
    def register(function: Function) -> Function:
        for name in names:
            assert name not in table, name
            table[name] = Definition(handed(function), composed, reads)
        return function

    return register


# --- what an operation is ---------------------------------------------------------------------------------------------


CONVERSION = "Cast"


def passes(name: str, inputs: Sequence[Any], target: Any) -> bool:
    """True if an operation needs no look at all. `target` is the type that a conversion gives."""
    if thread.passing or name != CONVERSION:
        return thread.passing or (is_exact(name) and not _has_complex_definition(name, inputs))
    return dtypes.as_dtype(target).as_datatype_enum not in INTEGERS or _is_integer(inputs[0])


def _has_complex_definition(name: str, inputs: Sequence[Any]) -> bool:
    """True if an operation, exact for real numbers, has a definition for these."""
    if name not in complex_definitions or name in allowed:
        return False
    return any(getattr(each, "dtype", None) in COMPLEX_TYPES for each in inputs)


def _is_integer(x: Any) -> bool:
    """True for a tensor of numbers without fractions; other arguments are not known yet."""
    source = getattr(getattr(x, "dtype", None), "base_dtype", None)
    return source is not None and source.as_datatype_enum not in FLOATS


def definition(name: str, types: set[int], values: Sequence[Any]) -> Definition | None:
    """The definition of an operation with these types; None for TensorFlow's own. RefusedError if neither."""
    result = definitions.get(name)
    types = types | fixed_types(name)
    if types & COMPLEX and name not in allowed:
        if name not in complex_definitions:
            raise complex_numbers(name, values)
        return complex_definitions[name]
    if result is None and hides_types(name):
        types = types | FLOATS
    if not types & FLOATS:
        if types & QUANTIZED and name not in allowed:
            raise refuse(name, "quantized numbers have no portable form", values=values)
        return None
    if name in allowed:
        ran_natively[name] += 1
        return None
    if result is None:
        raise refuse(name, values=values)
    return result


def complex_numbers(name: str, values: Sequence[Any]) -> Exception:
    remedy = "compute with the real and imaginary parts"
    return refuse(name, "complex numbers have no portable form", remedy, values)


# --- eager code -------------------------------------------------------------------------------------------------------

_fast, _execute = pywrap_tfe.TFE_Py_FastPathExecute, execute.execute


def fast_path(ctx: Any, name: str, *rest: Any) -> Any:
    """TFE_Py_FastPathExecute: what is not exact goes the slow way, to execute()."""
    if passes(name, rest[1:2], rest[3] if name == CONVERSION else None):
        result = _fast(ctx, name, *rest)
        if name in REAL and _is_complex(result) and name not in allowed:
            if name not in complex_definitions:
                raise complex_numbers(name, _several(result))
            raise core._FallbackException("portable numerics")
        return result
    raise core._FallbackException("portable numerics")


def _is_complex(result: Any) -> bool:
    """True if a result, or one of several, is complex."""
    return any(getattr(each, "dtype", None) in COMPLEX_TYPES for each in _several(result))


def _several(result: Any) -> Sequence[Any]:
    return result if isinstance(result, list | tuple) else (result,)


def executed(op_name: Any, num_outputs: int, inputs: Any, attrs: Any, ctx: Any, name: Any = None) -> Any:
    """execute.execute: the results of an operation, or of a function."""
    operation = op_name if isinstance(op_name, str) else op_name.decode()
    own = type_attributes(operation)
    given = dict(zip(attrs[::2], attrs[1::2], strict=True)) if attrs else {}
    if own is None or passes(operation, inputs, given.get("DstT")):
        result = _execute(op_name, num_outputs, inputs, attrs, ctx, name)
        if operation in REAL and _is_complex(result) and operation not in allowed:
            raise complex_numbers(operation, inputs)
        return result
    types = {each.dtype.as_datatype_enum for each in inputs}
    types.update(attribute_types(own, given, lambda value: value))
    results = definition(operation, types, inputs)
    if results is None:
        return _execute(op_name, num_outputs, inputs, attrs, ctx, name)
    given = {key: value.decode() if isinstance(value, bytes) else value for key, value in given.items()}
    if results.composed:
        counts[operation] += 1
        result = results.function(given, *inputs)
        return result if isinstance(result, list) else [result]
    try:
        arrays = computed(operation, results.function, given, [np.asarray(each._numpy()) for each in inputs])
    except Exception:
        _execute(op_name, num_outputs, inputs, attrs, ctx, name)  # which says itself what is wrong with an argument
        raise
    return [constant_op.convert_to_eager_tensor(each, ctx, dtypes.as_dtype(each.dtype)) for each in arrays]


def computed(name: str, function: Function, given: Attributes, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """The results of a definition, in the floating-point environment of IEEE 754.

    TensorFlow's threads have one in which small numbers are zeros.
    """
    counts[name] += 1
    before = _Environment()
    libm.fegetenv(before)
    libm.fesetenv(DEFAULT)
    try:
        with np.errstate(all="ignore"):
            results = function(given, *arrays)
    finally:
        libm.fesetenv(before)
    return list(results) if isinstance(results, tuple) else [results]


libm = ctypes.PyDLL("libm.so.6")  # which keeps Python's lock
_Environment = ctypes.c_char * 64
DEFAULT = ctypes.c_void_p(-1)
"""FE_DFL_ENV."""
