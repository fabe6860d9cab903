"""Operations of TensorFlow, where its Python makes them.

All Python code, generated or not, executes an operation by one of two functions, and makes a node of a graph by one
method. These are replaced. In eager code the numbers of a definition are computed at once. In a graph its node calls the
same function when the graph runs; in Python it stands for TensorFlow's own operation, with its type and attributes. So
TensorFlow's own gradients are taken, whose operations come by here again.
"""

import ctypes
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from tensorflow.core.framework import attr_value_pb2, types_pb2
from tensorflow.python import pywrap_tfe
from tensorflow.python.eager import context, core, execute
from tensorflow.python.framework import constant_op, dtypes, op_def_registry, ops
from tensorflow.python.ops import script_ops

from repro.portable.tensorflow.mode.exact import REAL, is_exact
from repro.portable.tensorflow.mode.refusal import refuse

Function = Callable[..., Any]
Attributes = dict[str, Any]

FLOATS = {types_pb2.DT_HALF, types_pb2.DT_FLOAT, types_pb2.DT_DOUBLE, types_pb2.DT_BFLOAT16}
COMPLEX = {types_pb2.DT_COMPLEX64, types_pb2.DT_COMPLEX128}
COMPLEX_TYPES = {dtypes.complex64, dtypes.complex128}
QUANTIZED = {value for name, value in types_pb2.DataType.items() if name.startswith(("DT_Q", "DT_FLOAT8", "DT_FLOAT4"))}
NODE = "PyFuncStateless"
"""The operation that calls a definition in a graph."""


@dataclass(frozen=True)
class Definition:
    """What is computed in the place of an operation."""

    function: Function
    composed: bool
    """Whether it calls other operations of TensorFlow, which come by here again; otherwise it takes and gives arrays."""


definitions: dict[str, Definition] = {}
"""By the names of operations."""
counts: Counter[str] = Counter()
"""How often each operation was computed portably."""
let_through: Counter[str] = Counter()
"""The same of operations that were let through."""
allowed: set[str] = set()
"""Operations to let through."""


class _Thread(threading.local):
    passing = False
    """Whether operations are TensorFlow's own."""


thread = _Thread()


class Passing:
    """A context in which operations are TensorFlow's own."""

    def __enter__(self) -> None:
        self.before, thread.passing = thread.passing, True

    def __exit__(self, *_: object) -> None:
        thread.passing = self.before


def define(*names: str) -> Callable[[Function], Function]:
    """Registers a function of attributes and arrays."""
    return _registration(names, composed=False)


def compose(*names: str) -> Callable[[Function], Function]:
    """Registers a function of attributes and tensors that is made of other operations, and has no gradient."""
    return _registration(names, composed=True)


def _registration(names: tuple[str, ...], composed: bool) -> Callable[[Function], Function]:
    def register(function: Function) -> Function:
        for name in names:
            assert name not in definitions, name
            definitions[name] = Definition(function, composed)
        return function

    return register


# --- what an operation is ---------------------------------------------------------------------------------------------


@cache
def _type_attributes(name: str) -> tuple[str, ...] | None:
    """The attributes of an operation that are types; None where there is no such operation, as of functions."""
    known = op_def_registry.get(name)
    return None if known is None else tuple(each.name for each in known.attr if each.type == "type")


def _passes(name: str) -> bool:
    """Whether nothing of an operation needs a look."""
    return thread.passing or is_exact(name)


def definition(name: str, types: set[int], values: Sequence[Any]) -> Definition | None:
    """What to compute in the place of an operation with these types; None for TensorFlow's own. RefusedError if neither."""
    if not types & FLOATS:
        if types & (COMPLEX | QUANTIZED) and name not in allowed:
            if types & COMPLEX:
                raise complex_numbers(name, values)
            raise refuse(name, "quantized numbers have no portable form", values=values)
        return None
    if name in allowed:
        let_through[name] += 1
        return None
    found = definitions.get(name)
    if found is None:
        raise refuse(name, values=values)
    return found


def complex_numbers(name: str, values: Sequence[Any]) -> Exception:
    remedy = "compute with the real and imaginary parts"
    return refuse(name, "complex numbers have no portable form", remedy, values)


# --- eager code -------------------------------------------------------------------------------------------------------

_fast, _execute = pywrap_tfe.TFE_Py_FastPathExecute, execute.execute
_create, _create_from = ops.Graph._create_op_internal, ops.Graph._create_op_from_tf_operation


def fast_path(ctx: Any, name: str, *rest: Any) -> Any:
    """TFE_Py_FastPathExecute: what is not exact goes the slow way, to execute()."""
    if is_exact(name) or thread.passing:
        found = _fast(ctx, name, *rest)
        if name in REAL and getattr(found, "dtype", None) in COMPLEX_TYPES and name not in allowed:
            raise complex_numbers(name, [found])
        return found
    raise core._FallbackException("portable numerics")


def executed(op_name: Any, num_outputs: int, inputs: Any, attrs: Any, ctx: Any, name: Any = None) -> Any:
    """execute.execute: the results of an operation, or of a function."""
    operation = op_name if isinstance(op_name, str) else op_name.decode()
    own = _type_attributes(operation)
    if own is None or _passes(operation):
        return _execute(op_name, num_outputs, inputs, attrs, ctx, name)
    given = dict(zip(attrs[::2], attrs[1::2], strict=True)) if attrs else {}
    types = {each.dtype.as_datatype_enum for each in inputs}
    types.update(int(given[each]) for each in own if each in given)
    found = definition(operation, types, inputs)
    if found is None:
        return _execute(op_name, num_outputs, inputs, attrs, ctx, name)
    given = {key: value.decode() if isinstance(value, bytes) else value for key, value in given.items()}
    if found.composed:
        counts[operation] += 1
        result = found.function(given, *inputs)
        return result if isinstance(result, list) else [result]
    try:
        arrays = computed(operation, found.function, given, [np.asarray(each._numpy()) for each in inputs])
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
    libm.fegetenv(ctypes.byref(before))
    libm.fesetenv(DEFAULT)
    try:
        with np.errstate(all="ignore"):
            found = function(given, *arrays)
    finally:
        libm.fesetenv(ctypes.byref(before))
    return list(found) if isinstance(found, tuple) else [found]


libm = ctypes.CDLL("libm.so.6")
_Environment = ctypes.c_char * 64
DEFAULT = ctypes.c_void_p(-1)
"""FE_DFL_ENV."""


# --- graphs -----------------------------------------------------------------------------------------------------------


def created(
    graph: Any,
    op_type: str,
    inputs: Any,
    dtypes: Any = None,
    input_types: Any = None,
    name: Any = None,
    attrs: Any = None,
    op_def: Any = None,
    compute_device: bool = True,
) -> Any:
    """Graph._create_op_internal: a node."""
    rest = dtypes, input_types, name, attrs, op_def, compute_device
    own = _type_attributes(op_type)
    if own is None or _passes(op_type):
        made = _create(graph, op_type, inputs, *rest)
        if op_type in REAL and made.outputs and made.outputs[0].dtype in COMPLEX_TYPES and op_type not in allowed:
            raise complex_numbers(op_type, made.outputs)
        return made
    types = {each.dtype.base_dtype.as_datatype_enum for each in inputs}
    types.update(attrs[each].type for each in own if attrs and each in attrs)
    found = definition(op_type, types, inputs)
    if found is None:
        return _create(graph, op_type, inputs, *rest)
    attrs = attrs or {}
    given = {key: _value(value) for key, value in attrs.items() if key[0] != "_"}
    if found.composed:
        return _composed(graph, op_type, found.function, given, inputs, name, attrs)
    # Its shapes and types are those of TensorFlow's own node, which has no use beside and is not computed.
    like = _create(graph, op_type, inputs, dtypes, input_types, None, attrs, op_def, compute_device)
    node = _calling(op_type, found.function, given, inputs, [each.dtype for each in like.outputs])
    made = _create(graph, NODE, inputs, None, None, name or op_type, node, None, compute_device)
    for tensor, other in zip(made.outputs, like.outputs, strict=True):
        tensor.set_shape(other.shape)
    return as_operation(made, Standing, op_type, attrs)


def _composed(graph: Any, name: str, function: Function, given: Attributes, inputs: Any, scope: Any, attrs: Any) -> Any:
    counts[name] += 1
    result = function(given, *inputs)
    if isinstance(result, ops.Operation):
        return result
    results = result if isinstance(result, list) else [result]
    node = {"T": _list([each.dtype for each in results])}
    made = _create(graph, "IdentityN", results, None, None, scope or name, node, None, True)
    return as_operation(made, Answering, name, attrs)


def calculated(
    name: str,
    function: Function,
    given: Attributes,
    tensors: Sequence[Any],
    types: Sequence[Any],
    shapes: Sequence[Any],
) -> list[Any]:
    """The results of a definition that is no operation of TensorFlow, of these types and shapes, without a gradient."""
    if context.executing_eagerly():
        arrays = computed(name, function, given, [np.asarray(each._numpy()) for each in tensors])
        return [
            constant_op.convert_to_eager_tensor(each, context.context(), dtype)
            for each, dtype in zip(arrays, types, strict=True)
        ]
    graph = ops.get_default_graph()
    made = graph._create_op_internal(
        NODE, list(tensors), name=name, attrs=_calling(name, function, given, tensors, types)
    )
    for tensor, shape in zip(made.outputs, shapes, strict=True):
        tensor.set_shape(shape)
    return list(made.outputs)


def _calling(name: str, function: Function, given: Attributes, inputs: Sequence[Any], types: Sequence[Any]) -> Any:
    """The attributes of a node that calls a definition."""
    return {
        "token": Attribute(s=_token(name, function, given)),
        "Tin": _list([each.dtype.base_dtype for each in inputs]),
        "Tout": _list(types),
    }


Attribute = attr_value_pb2.AttrValue


def _list(types: Sequence[Any]) -> Any:
    return Attribute(list=Attribute.ListValue(type=[each.as_datatype_enum for each in types]))


def _value(attribute: Any) -> Any:
    """An attribute as Python has it."""
    kind = attribute.WhichOneof("value")
    if kind is None:
        return []
    value = getattr(attribute, kind)
    if kind == "list":
        return next((list(part) for _, part in value.ListFields()), [])
    return value.decode("utf-8", "replace") if kind == "s" else value


_callbacks: dict[Any, tuple[str, Function]] = {}


def _token(name: str, function: Function, given: Attributes) -> bytes:
    """The name by which a node calls a definition with these attributes."""
    key = name, function, repr(sorted(given.items()))
    if key not in _callbacks:

        def called(*arrays: np.ndarray) -> list[np.ndarray]:
            return computed(name, function, given, [np.asarray(each) for each in arrays])

        _callbacks[key] = script_ops._py_funcs.insert(called), called
    return _callbacks[key][0].encode()


def imported(graph: Any, c_op: Any, compute_device: bool = True) -> Any:
    """Graph._create_op_from_tf_operation: a node of a graph that was loaded, or that C++ made."""
    made = _create_from(graph, c_op, compute_device)
    own = _type_attributes(made.type)
    if own is None or _passes(made.type):
        return made
    types = {each.dtype.base_dtype.as_datatype_enum for each in (*made.inputs, *made.outputs)}
    if not types & (FLOATS | COMPLEX | QUANTIZED):
        return made
    if made.type in allowed:
        let_through[made.type] += 1
        return made
    raise refuse(made.type, LOADED, "build the model in Python, and load its weights", values=made.outputs)


LOADED = "it stands in a graph that was loaded, where it cannot be replaced"


class Answering(ops.Operation):
    """A node that answers for the attributes of another operation."""

    def get_attr(self, name: str) -> Any:
        attribute = self._portable_attributes.get(name)
        if attribute is None:
            return super().get_attr(name)
        kind = attribute.WhichOneof("value")
        if kind == "type":
            return dtypes.as_dtype(attribute.type)
        if kind == "list":
            for field, part in attribute.list.ListFields():
                return [dtypes.as_dtype(each) for each in part] if field.name == "type" else list(part)
            return []
        return getattr(attribute, kind) if kind else []

    _get_attr_type = _get_attr_bool = _get_attr_int = get_attr


class Standing(Answering):
    """A node that is TensorFlow's operation of another type to all who ask: for its gradient, or to copy it."""

    @property
    def type(self) -> str:
        return self._portable_type

    @property
    def node_def(self) -> Any:
        found = super().node_def
        found.op = self._portable_type
        found.ClearField("attr")
        for name, attribute in self._portable_attributes.items():
            found.attr[name].CopyFrom(attribute)
        return found


def as_operation(node: Any, kind: type, name: str, attributes: Any) -> Any:
    node.__class__ = kind
    node._portable_type, node._portable_attributes = name, attributes
    return node
