"""Nodes: operations of a backend in a graph."""

from collections.abc import Callable
from typing import Any

ARITHMETIC = {"add", "sub", "mul", "truediv", "and_", "or_", "xor"}
COMPARISONS = {"lt", "gt", "le", "ge", "eq", "ne"}
BINARY = ARITHMETIC | COMPARISONS
CASTS = {"f64", "f32", "integer", "int64", "int8", "int16", "part"}
"""Conversions; a part of an array that is joined of several has its place in that."""
ELEMENTWISE = (
    BINARY
    | CASTS
    | {"neg", "r32", "rint", "floor", "sqrt", "where", "clip", "shift_left", "shift_right", "pattern", "number", "take"}
)
REDUCTIONS = {"sum", "largest", "maximum_of"}
COMPILED = ELEMENTWISE | REDUCTIONS | {"stack"}
"""Operations that kernels compute; the others are calls of the framework's functions."""
PLACES = {"view", "product", "joined"}
"""Operations that are neither: views, `shift` numbers on in their input's memory; products of matrices, in `stages`;
arrays whose parts kernels write, each `shift` numbers on."""
CONSTANT = {"tables", "causal", "counting"}
"""Functions of shapes alone."""


class UnknownError(Exception):
    """A definition does what cannot be compiled."""


class Node:
    """An operation of a graph, with the shape, strides and type that the framework gave its result."""

    __slots__ = ("attributes", "common", "dtype", "function", "inputs", "operation", "shape", "strides", "value")

    def __init__(self, operation: str, inputs: tuple, value: Any, function: Callable | None = None, **attributes: Any):
        self.operation, self.inputs, self.function, self.attributes = operation, inputs, function, attributes
        self.value = value if operation == "constant" else None
        if value is not None:
            self.shape, self.dtype = tuple(value.shape), value.dtype
            self.strides = value.stride() if hasattr(value, "stride") else ()
            self.common = attributes.get("common", self.dtype)
            """The type in which it computes."""

    @property
    def space(self) -> tuple[int, ...]:
        """The shape of what a kernel runs over for it."""
        return self.inputs[0].shape if self.operation in REDUCTIONS | {"stack"} else self.shape


def mapped(given: Any, kind: Any, change: Callable[[Any], Any]) -> Any:
    """Changes all of this kind in nested tuples and lists."""
    if isinstance(given, (tuple, list)):
        return type(given)([mapped(each, kind, change) for each in given])
    return change(given) if isinstance(given, kind) and not isinstance(given, bool) else given


def nodes_in(given: Any) -> list[Node]:
    """The nodes in nested tuples."""
    if isinstance(given, (tuple, list)):
        return [node for each in given for node in nodes_in(each)]
    return [given] if isinstance(given, Node) else []


def leaves(target: Node, stored: set[Node]) -> list[Node]:
    """The nodes in memory that a target is computed from."""
    result: dict[Node, None] = {}
    ahead = nodes_in(target.inputs)
    seen = set(ahead)
    while ahead:
        node = ahead.pop()
        if node in stored or node.operation not in ELEMENTWISE:
            result[node] = None
        else:
            more = [each for each in nodes_in(node.inputs) if each not in seen]
            seen.update(more)
            ahead += more
    return list(result)
