"""Tracer: a backend that records a definition as a graph of elements and of what is reduced along axes."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from repro.portable.backends.numpy import Backend
from repro.portable.definitions import grids

REDUCTIONS = {"largest": 0, "sum": 0.0, "maximum_of": -math.inf}
"""What reduces an axis, and what it begins with."""


class UnknownError(Exception):
    """A definition does what cannot be compiled."""


class Node:
    """An operation on elements, or a reduction of them."""

    def __init__(
        self, operation: str, inputs: Sequence[Any], dtype: Any, shape: tuple[int, ...], common: Any = None
    ) -> None:
        self.operation, self.inputs, self.shape = operation, tuple(inputs), shape
        self.dtype = np.dtype(dtype)
        self.common = self.dtype if common is None else np.dtype(common)
        """The type in which it computes."""
        self.array: Any = None
        """The numbers of a table."""

    ndim = property(lambda self: len(self.shape))

    if TYPE_CHECKING:  # made below

        def __getattr__(self, name: str) -> Any: ...
        def __add__(self, other: Any) -> "Node": ...
        def __sub__(self, other: Any) -> "Node": ...
        def __rsub__(self, other: Any) -> "Node": ...
        def __mul__(self, other: Any) -> "Node": ...
        def __gt__(self, other: Any) -> "Node": ...

    def __neg__(self) -> "Node":
        return Node("neg", (self,), self.dtype, self.shape)


ARITHMETIC = ("add", "sub", "mul", "truediv", "and", "or", "xor")
COMPARISONS = ("lt", "gt", "le", "ge", "eq", "ne")


def _common(*values: Any) -> np.dtype:
    """The type of a result of arrays and numbers, which count for less."""
    types = [each.dtype for each in values if isinstance(each, Node)]
    found = np.result_type(*types)
    if found.kind in "iub" and any(isinstance(each, float) for each in values):
        raise UnknownError("integers and a fraction")
    return found


def _binary(name: str, reflected: bool) -> Callable[[Node, Any], Node]:
    def method(self: Node, other: Any) -> Node:
        if not isinstance(other, Node | int | float | np.generic):
            raise UnknownError(name)
        other = other.item() if isinstance(other, np.generic) else other
        pair = (other, self) if reflected else (self, other)
        common = _common(*pair)
        return Node(name, pair, bool if name in COMPARISONS else common, _shape(*pair), common)

    return method


def _shape(*values: Any) -> tuple[int, ...]:
    return np.broadcast_shapes(*(each.shape for each in values if isinstance(each, Node)))


for _name in (*ARITHMETIC, *COMPARISONS):
    setattr(Node, f"__{_name}__", _binary(_name, False))
    if _name in ARITHMETIC:
        setattr(Node, f"__r{_name}__", _binary(_name, True))


class Tracer:
    """Of definitions that reduce these axes, which stay with size 1."""

    nan, inf, ranks, engine = Backend.nan, Backend.inf, Backend.ranks, Backend.engine

    def __init__(self, axes: tuple[int, ...]) -> None:
        self.axes = axes
        self.known: dict[int, Node] = {}

    def __getattr__(self, name: str) -> Any:
        raise UnknownError(name)

    def _one(self, name: str, x: Node, dtype: Any, common: Any = None) -> Node:
        return Node(name, (x,), dtype, x.shape, common)

    def f64(self, x: Node) -> Node:
        return x if x.dtype == np.float64 else self._one("cast", x, np.float64)

    def f32(self, x: Node) -> Node:
        return x if x.dtype == np.float32 else self._one("cast", x, np.float32)

    def r32(self, x: Node) -> Node:
        return self._one("r32", x, np.float32)

    def integer(self, x: Node) -> Node:
        return self._one("cast", x, np.int32)

    def int64(self, x: Node) -> Node:
        return self._one("cast", x, np.int64)

    def int16(self, x: Node) -> Node:
        return self._one("cast", x, np.int16)

    def rint(self, x: Node) -> Node:
        return self._one("rint", x, x.dtype)

    def floor(self, x: Node) -> Node:
        return self._one("floor", x, x.dtype)

    def sqrt(self, x: Node) -> Node:
        return self._one("sqrt", x, x.dtype)

    def where(self, condition: Node, a: Any, b: Any) -> Node:
        return Node(
            "where", (condition, a, b), _common(*(x for x in (a, b) if isinstance(x, Node))), _shape(condition, a, b)
        )

    def clip(self, x: Node, low: float, high: float) -> Node:
        return Node("clip", (x, low, high), x.dtype, x.shape)

    def shift_left(self, x: Node, bits: int) -> Node:
        return Node("shift_left", (x, bits), x.dtype, x.shape)

    def shift_right(self, x: Node, bits: int) -> Node:
        return Node("shift_right", (x, bits), x.dtype, x.shape)

    def pattern(self, x: Node) -> Node:
        return self._one("bits", x, np.int64 if x.dtype == np.float64 else np.int32, x.dtype)

    def number(self, pattern: Node) -> Node:
        return self._one("bits", pattern, np.float64 if pattern.dtype == np.int64 else np.float32, pattern.dtype)

    def grids(self, x: Node, axes: tuple[int, ...], bits: int, batch: bool) -> tuple[Node, Node]:
        return grids.grids(self, x, axes, bits, batch)

    def largest(self, x: Node, axes: tuple[int, ...]) -> Node:
        return self._reduced("largest", x, axes, x.dtype)

    def sum(self, x: Node, axes: tuple[int, ...]) -> Node:
        return self._reduced("sum", self.f64(x), axes, np.float64)

    def maximum_of(self, x: Node) -> Node:
        return self._reduced("maximum_of", x, (-1,), x.dtype)

    def _reduced(self, name: str, x: Node, axes: tuple[int, ...], dtype: Any) -> Node:
        if tuple(sorted(axis % x.ndim for axis in axes)) != self.axes:
            raise UnknownError(f"{name} along {axes}")
        shape = tuple(1 if axis in self.axes else size for axis, size in enumerate(x.shape))
        return Node(name, (x,), dtype, shape)

    def multiply_add(self, a: Node, b: Node, c: Node) -> Node:
        return a * b + c

    def total(self, x: Node) -> Node:
        return x

    def tables(self, like: Node, made: Callable[..., Any], *arguments: Any) -> list[Node]:
        found = []
        for array in Backend.tables(like, made, *arguments):
            node = self.known.setdefault(id(array), Node("table", (), array.dtype, ()))
            node.array = array
            found.append(node)
        return found

    def take(self, table: Node, index: Node) -> Node:
        if table.operation != "table":
            raise UnknownError("take")
        return Node("take", (table, index), table.dtype, index.shape)
