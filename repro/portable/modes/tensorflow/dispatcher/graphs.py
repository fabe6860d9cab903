"""Operations of TensorFlow in graphs.

All Python code makes a node by one method, which is replaced. A node of a definition calls its function when the graph runs; in
Python it stands for TensorFlow's own operation, with its type and attributes. So TensorFlow's own gradients are taken,
whose operations come by here again.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.eager import context
from tensorflow.python.framework import constant_op, dtypes, ops
from tensorflow.python.ops import script_ops

from repro.portable.modes.tensorflow.dispatcher import arrays, dispatch, native
from repro.portable.modes.tensorflow.dispatcher.dispatch import (
    CONVERSION,
    Attributes,
    Definition,
    Function,
    allowed,
    complex_numbers,
    counts,
    definition,
    passes,
    ran_natively,
)
from repro.portable.modes.tensorflow.dispatcher.exact import NATIVE, REAL
from repro.portable.modes.tensorflow.dispatcher.kinds import (
    COMPLEX,
    COMPLEX_TYPES,
    FLOATS,
    QUANTIZED,
    attribute_types,
    type_attributes,
)
from repro.portable.modes.tensorflow.dispatcher.refusal import refuse

NODE = "PyFuncStateless"
"""The operation that calls a definition in a graph by Python; NATIVE does so without."""

_create, _create_from = ops.Graph._create_op_internal, ops.Graph._create_op_from_tf_operation


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
    if op_type == arrays.LOOP:
        attrs = arrays.turn_by_turn(attrs or {})
    rest = dtypes, input_types, name, attrs, op_def, compute_device
    own = type_attributes(op_type)
    if own is None or passes(op_type, inputs, attrs["DstT"].type if op_type == CONVERSION else None):
        made = _create(graph, op_type, inputs, *rest)
        if op_type in REAL and any(each.dtype in COMPLEX_TYPES for each in made.outputs) and op_type not in allowed:
            raise complex_numbers(op_type, made.outputs)
        if op_type in arrays.WRITES:
            arrays.in_order(graph, made)
        return made
    types = {each.dtype.base_dtype.as_datatype_enum for each in inputs}
    types.update(attribute_types(own, attrs or {}, _types))
    result = definition(op_type, types, inputs)
    if result is None:
        return _create(graph, op_type, inputs, *rest)
    attrs = attrs or {}
    given = {key: _value(value) for key, value in attrs.items() if key[0] != "_"}
    if result.composed:
        return _composed(graph, op_type, result.function, given, inputs, name, attrs)
    # Its shapes and types are those of TensorFlow's own node, which has no use beside and is not computed.
    like = _create(graph, op_type, inputs, dtypes, input_types, None, attrs, op_def, compute_device)
    kind, node = _calling(op_type, result, given, inputs, [each.dtype for each in like.outputs])
    made = _create(graph, kind, inputs, None, None, name or op_type, node, None, compute_device)
    for tensor, other in zip(made.outputs, like.outputs, strict=True):
        tensor.set_shape(other.shape)
    return as_operation(made, StandInOperation, op_type, attrs)


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
        arrays = dispatch.computed(name, function, given, [np.asarray(each._numpy()) for each in tensors])
        return [
            constant_op.convert_to_eager_tensor(each, context.context(), dtype)
            for each, dtype in zip(arrays, types, strict=True)
        ]
    graph = ops.get_default_graph()
    kind, node = _calling(name, Definition(function, composed=False), given, tensors, types)
    made = graph._create_op_internal(kind, list(tensors), name=name, attrs=node)
    for tensor, shape in zip(made.outputs, shapes, strict=True):
        tensor.set_shape(shape)
    return list(made.outputs)


def _calling(
    name: str, definition: Definition, given: Attributes, inputs: Sequence[Any], types: Sequence[Any]
) -> tuple[str, Any]:
    """The operation that computes a definition in a graph, and its attributes."""
    given_types = [each.dtype.base_dtype for each in inputs]
    attributes = {"Tin": _list(given_types), "Tout": _list(types)}
    numbers = [each.as_datatype_enum for each in given_types], [each.as_datatype_enum for each in types]
    if native.takes(definition, *numbers):
        own = native.attributes_of(name, definition, given, *numbers)
        return NATIVE, attributes | {each: Attribute(i=number) for each, number in own.items()}
    attributes["token"] = Attribute(s=_token(name, definition.function, given))
    return NODE, attributes


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


def _types(attribute: Any) -> Any:
    """The type, or types, of an attribute that is some."""
    return list(attribute.list.type) if attribute.WhichOneof("value") == "list" else attribute.type


_callbacks: dict[Any, tuple[str, Function]] = {}


def _token(name: str, function: Function, given: Attributes) -> bytes:
    """The name by which a node calls a definition with these attributes."""
    key = name, function, repr(sorted(given.items()))
    if key not in _callbacks:

        def called(*arrays: np.ndarray) -> list[np.ndarray]:
            return dispatch.computed(name, function, given, [np.asarray(each) for each in arrays])

        _callbacks[key] = script_ops._py_funcs.insert(called), called
    return _callbacks[key][0].encode()


def imported(graph: Any, c_op: Any, compute_device: bool = True) -> Any:
    """Graph._create_op_from_tf_operation: a node of a graph that was loaded, or that C++ made."""
    made = _create_from(graph, c_op, compute_device)
    own = type_attributes(made.type)
    if own is None or passes(made.type, made.inputs, made.outputs[0].dtype.as_datatype_enum if made.outputs else None):
        return made
    types = {each.dtype.base_dtype.as_datatype_enum for each in (*made.inputs, *made.outputs)}
    if not types & (FLOATS | COMPLEX | QUANTIZED):
        return made
    if made.type in allowed:
        ran_natively[made.type] += 1
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


class StandInOperation(Answering):
    """A node that is TensorFlow's operation of another type to all who ask: for its gradient, or to copy it."""

    @property
    def type(self) -> str:
        return self._portable_type

    @property
    def node_def(self) -> Any:
        result = super().node_def
        result.op = self._portable_type
        result.ClearField("attr")
        for name, attribute in self._portable_attributes.items():
            result.attr[name].CopyFrom(attribute)
        return result


def as_operation(node: Any, kind: type, name: str, attributes: Any) -> Any:
    node.__class__ = kind
    node._portable_type, node._portable_attributes = name, attributes
    return node
