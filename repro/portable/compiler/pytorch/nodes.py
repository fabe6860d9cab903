"""Nodes: operations of a backend in a graph."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

BINARY = {"add", "sub", "mul", "truediv", "and_", "or_", "xor", "lt", "gt", "le", "ge", "eq", "ne"}
ELEMENTWISE = BINARY | {
    "neg",
    "f64",
    "f32",
    "r32",
    "rint",
    "floor",
    "sqrt",
    "where",
    "clip",
    "integer",
    "int64",
    "int8",
    "int16",
    "shift_left",
    "shift_right",
    "pattern",
    "number",
    "multiply_add",
    "take",
}
REDUCTIONS = {"sum", "largest", "maximum_of"}
COMPILED = ELEMENTWISE | REDUCTIONS | {"stack"}
"""Operations that kernels compute; the others are calls of PyTorch's functions."""
PLACES = {"view", "product"}
"""Neither: the memory of the input, `shift` numbers on; and a product of matrices, in `stages` of machine code."""
CONSTANT = {"tables", "causal", "counting"}
"""Functions of shapes alone."""


class Node:
    """One operation of a graph, with the shape, strides and type that PyTorch gave its result."""

    __slots__ = ("attributes", "dtype", "function", "inputs", "operation", "shape", "strides", "tensor")

    def __init__(self, operation: str, inputs: tuple, value: Any, function: Callable | None = None, **attributes: Any):
        self.operation, self.inputs, self.function, self.attributes = operation, inputs, function, attributes
        self.tensor = value if operation == "constant" else None
        if isinstance(value, Tensor):
            self.shape, self.strides, self.dtype = tuple(value.shape), value.stride(), value.dtype

    @property
    def space(self) -> tuple[int, ...]:
        """The shape of what a kernel runs over for it."""
        return self.inputs[0].shape if self.operation in REDUCTIONS | {"stack"} else self.shape


def mapped(given: Any, kind: type, change: Callable[[Any], Any]) -> Any:
    """Nested tuples and lists with all that is of this kind changed."""
    if isinstance(given, (tuple, list)):
        return type(given)([mapped(each, kind, change) for each in given])
    return change(given) if isinstance(given, kind) and not isinstance(given, bool) else given


def nodes_in(given: Any) -> list[Node]:
    """The nodes in nested tuples."""
    if isinstance(given, (tuple, list)):
        return [node for each in given for node in nodes_in(each)]
    return [given] if isinstance(given, Node) else []


def leaves(target: Node, stored: set[Node]) -> list[Node]:
    """What is in memory, of what a target is computed from."""
    found: dict[Node, None] = {}
    ahead = nodes_in(target.inputs)
    seen = set(ahead)
    while ahead:
        node = ahead.pop()
        if node in stored or node.operation not in ELEMENTWISE:
            found[node] = None
        else:
            more = [each for each in nodes_in(node.inputs) if each not in seen]
            seen.update(more)
            ahead += more
    return list(found)
