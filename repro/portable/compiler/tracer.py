"""Tracer: a backend that computes a definition, and records it as a graph."""

import math
import operator
from collections.abc import Callable, MutableMapping
from functools import partial
from typing import Any, ClassVar

from repro.portable.compiler.nodes import BINARY, COMPARISONS, COMPILED, REDUCTIONS, Node, mapped
from repro.portable.definitions import grids


class Array:
    """An array of the framework, and the node that it is the result of."""

    __hash__ = object.__hash__
    __array_ufunc__ = None
    """None, so that NumPy's numbers leave operators to it."""

    def __init__(self, tracer: "Tracer", node: Node, value: Any) -> None:
        self.tracer, self.node, self.value = tracer, node, value
        self.shape, self.dtype = tuple(value.shape), value.dtype

    def __getitem__(self, key: Any) -> "Array":
        return self.tracer.trace("getitem", lambda array: array[key], self)

    def __matmul__(self, other: "Array") -> "Array":
        return self.tracer.trace("product", operator.matmul, self, other)

    def __neg__(self) -> "Array":
        return self.tracer.trace("neg", operator.neg, self)


def _method(name: str, reflected: bool) -> Callable[[Array, Any], Array]:
    function = getattr(operator, name)
    if reflected:
        return lambda self, other: self.tracer.trace(name, function, other, self)
    return lambda self, other: self.tracer.trace(name, function, self, other)


for _name in BINARY:
    setattr(Array, f"__{_name.strip('_')}__", _method(_name, reflected=False))
    setattr(Array, f"__r{_name.strip('_')}__", _method(_name, reflected=True))


class Tracer:
    """A framework's has its backend, and what becomes of the operations that kernels do not compute."""

    nan, inf = math.nan, math.inf
    backend: ClassVar[Any]
    result_type: ClassVar[Callable[..., Any]]
    """The type in which two arrays or numbers are compared."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.known: MutableMapping[tuple, Array] = {}

    def __getattr__(self, name: str) -> Any:
        return partial(self.trace, name, getattr(self.backend, name))

    def given(self, value: Any) -> Array:
        """An argument of the definition."""
        return self.array(Node("input", (), value), value)

    def trace(self, name: str, function: Callable, *arguments: Any) -> Any:
        """Calls a function of arrays, and of what else."""
        if name not in COMPILED:
            return self.call(name, function, *arguments)
        inputs = mapped(arguments, Array, lambda array: array.node)
        key = (name, *[each if isinstance(each, Node) else (type(each), str(each)) for each in inputs])
        if key in self.known:
            return self.known[key]
        values = mapped(arguments, Array, lambda array: array.value)
        value = function(*values)
        attributes: dict[str, Any] = {}
        if name in REDUCTIONS:
            inputs = inputs[:1]
        elif name in COMPARISONS:
            attributes["common"] = self.result_type(*values)
        elif name == "stack":
            inputs, attributes["axis"] = inputs[0], inputs[1] % value.ndim
        result = self.known[key] = self.array(Node(name, inputs, value, function, **attributes), value)
        return result

    def call(self, name: str, function: Callable, *arguments: Any) -> Any:
        """Calls a function that kernels do not compute."""
        raise NotImplementedError(name)

    def array(self, node: Node, value: Any) -> Array:
        """The result of a node."""
        self.nodes.append(node)
        return Array(self, node, value)

    # --- in smaller operations, which become part of kernels ----------------------------------------------------------

    def grids(self, x: Array, axes: tuple[int, ...], bits: int, batch: bool) -> tuple[Array, Array]:
        return grids.grids(self, x, axes, bits, batch)

    def multiply_add(self, a: Any, b: Any, c: Any) -> Array:
        return a * b + c
