"""Gradients of TensorArrays, where reads of one place are added up.

TensorFlow 1's arrays add what is written to a gradient as it happens to come: with a third number at one place the order counts. Here
writes come in the order in which they were made, by control edges, and loops run turn by turn. Between loops no edge is possible, and
such an array is refused. Lists, of TensorFlow 2's graphs, keep the last of the gradients that one `gather` has for a place; here they are added up.
"""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from weakref import WeakKeyDictionary

from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.framework import ops
from tensorflow.python.ops import array_ops, control_flow_util, gen_list_ops, gen_math_ops

from repro.portable.modes.tensorflow.dispatcher.dispatch import allowed
from repro.portable.modes.tensorflow.dispatcher.refusal import refuse

WRITES = {"TensorArrayWriteV3", "TensorArrayScatterV3", "TensorArraySplitV3"}
GRADIENTS = {"TensorArrayGradV3", "TensorArrayGradWithShape"}
LOOP = "Enter"
"""The operation that brings a tensor into a loop of TensorFlow 1."""
HANDED_ON = {LOOP, "RefEnter", "Identity", "Switch", "RefSwitch"}
GATHER = "TensorListGather"

_writes: WeakKeyDictionary[Any, dict[tuple[Any, str], Any]] = WeakKeyDictionary()
"""The last write to the gradient of each array of a graph: by the operation that made the array, and the gradient's name."""


def turn_by_turn(attributes: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a loop in which a turn begins where the one before has ended."""
    return attributes | {"parallel_iterations": attr_value_pb2.AttrValue(i=1)}


def in_order(graph: Any, write: Any) -> None:
    """Lets a write to the gradient of an array follow those before it. RefusedError where it cannot."""
    gradient = _origin(write.inputs[0])
    if gradient.type not in GRADIENTS or gradient.type in allowed:
        return
    last = _writes.setdefault(graph, {})
    key = _origin(gradient.inputs[0]), gradient.get_attr("source").decode()
    if key in last:
        if control_flow_util.GetOutputContext(last[key]) is not control_flow_util.GetOutputContext(write):
            why = "what several loops or branches read of one array has gradients that are added in no fixed order"
            raise refuse(gradient.type, why, "call tf.compat.v1.enable_control_flow_v2()")
        write._add_control_input(last[key])
    last[key] = write


def _origin(tensor: Any) -> Any:
    """The operation that made a handle."""
    while tensor.op.type in HANDED_ON:
        tensor = tensor.op.inputs[0]
    return tensor.op


def install(undo: ExitStack) -> None:
    """Replaces the gradient of a list's places."""
    entry = ops.gradient_registry._registry[GATHER]
    own = entry["type"]
    entry["type"] = _summed(own)
    undo.callback(entry.__setitem__, "type", own)


def _summed(own: Callable[..., Any]) -> Callable[..., Any]:
    def gradient(op: Any, given: Any) -> Any:
        """That of TensorFlow, with the sum of a place in each of its rows."""
        handle, places, _ = op.inputs
        sums = gen_math_ops.unsorted_segment_sum(given, places, gen_list_ops.tensor_list_length(handle))
        return own(op, array_ops.gather(sums, places))

    return gradient
