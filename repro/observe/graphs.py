"""Graphs of TensorFlow: the batch that a function is given while it is traced."""

import sys
from typing import Any

CONTROL_FLOW = ("CondBranchFuncGraph", "WhileCondFuncGraph", "WhileBodyFuncGraph")
"""Graphs whose arguments are what surrounds them, and no batch."""


def given() -> list[tuple[str, Any]]:
    """The arrays that the graph under way is given: arguments of its function, and what iterators hand out within it.

    Numbers that are no arrays, as a count of steps, are no batch; nor is what the function captures.
    """
    tensorflow = sys.modules["tensorflow"]
    if tensorflow.executing_eagerly():
        return []
    graph = tensorflow.compat.v1.get_default_graph()
    captured = {id(inner) for _, inner in getattr(graph, "captures", ())}
    arrays: list[tuple[str, Any]] = []
    for operation in graph.get_operations():
        if operation.type == "Placeholder" and type(graph).__name__ not in CONTROL_FLOW:
            arrays += [(operation.name, tensor) for tensor in operation.outputs if id(tensor) not in captured]
        elif operation.type.startswith("IteratorGetNext"):
            arrays += [(f"{operation.name}.{place}", tensor) for place, tensor in enumerate(operation.outputs)]
    return [(name, tensor) for name, tensor in arrays if _is_array(tensor)]


def _is_array(tensor: Any) -> bool:
    """True for numbers in at least one dimension; not for handles of variables and iterators, nor for text."""
    kind = tensor.dtype
    return tensor.shape.rank != 0 and bool(kind.is_floating or kind.is_integer or kind.is_complex or kind.is_bool)
