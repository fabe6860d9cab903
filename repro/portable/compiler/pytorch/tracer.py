"""Tracer: PyTorch's backend, recorded as a graph."""

import operator
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from repro.portable.backends import pytorch_slices as slices
from repro.portable.backends.pytorch import Backend
from repro.portable.compiler.pytorch.nodes import BINARY, COMPILED, CONSTANT, ELEMENTWISE, REDUCTIONS, Node, mapped
from repro.portable.definitions import grids
from repro.portable.definitions import slices as int8
from repro.portable.kernels import pytorch as compiler

if compiler.available:
    from repro.portable.kernels.pytorch import sums


class Array:
    """A tensor, and the node that it is the result of."""

    __hash__ = object.__hash__

    def __init__(self, tracer: "Tracer", node: Node, value: Tensor) -> None:
        self.tracer, self.node, self.value = tracer, node, value
        self.shape, self.dtype, self.device = tuple(value.shape), value.dtype, value.device

    def __getitem__(self, key: Any) -> "Array":
        return self.tracer.trace("getitem", lambda tensor: tensor[key], self)

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
    """What it does not have of its own are the functions of Backend."""

    nan, inf = Backend.nan, Backend.inf

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.known: dict[tuple, Array] = {}
        self.ranks = self

    def __getattr__(self, name: str) -> Any:
        return partial(self.trace, name, getattr(Backend, name))

    def given(self, tensor: Tensor) -> Array:
        """An argument of the definition."""
        return self._array(Node("input", (), tensor), tensor)

    def trace(self, name: str, function: Callable, *arguments: Any) -> Any:
        """Calls a function of arrays, and of what else."""
        inputs = mapped(arguments, Array, lambda array: array.node)
        key = (name, *[each if isinstance(each, Node) else (type(each), each) for each in inputs])
        if name in ELEMENTWISE | REDUCTIONS and key in self.known:
            return self.known[key]
        values = mapped(arguments, Array, lambda array: array.value)
        value = function(*values)
        if name in CONSTANT:
            return mapped(value, Tensor, lambda tensor: self._array(Node("constant", (), tensor), tensor))
        if not isinstance(value, Tensor):
            call = Node("call", inputs, None, function)
            self.nodes.append(call)
            parts = enumerate(value)
            return [self._array(Node("item", (call,), each, operator.itemgetter(index)), each) for index, each in parts]
        if name not in COMPILED:
            for source in _arrays_in(arguments):
                if _in_one_memory(source.value, value):
                    return self._view(source, value)
        attributes: dict[str, Any] = {}
        if name in REDUCTIONS:
            inputs = inputs[:1]
        elif name in BINARY:
            attributes["common"] = torch.result_type(*values)
        elif name == "stack":
            inputs, attributes["axis"] = inputs[0], inputs[1] % value.dim()
        found = self._array(Node(name if name in COMPILED else "call", inputs, value, function, **attributes), value)
        if name in ELEMENTWISE | REDUCTIONS:
            self.known[key] = found
        return found

    def _view(self, source: Array, value: Tensor) -> Array:
        """What lies in the memory of another array."""
        if source.node.operation == "constant":
            return self._array(Node("constant", (), value), value)
        shift = value.storage_offset() - source.value.storage_offset()
        root = source.node
        if root.operation == "view":
            shift += root.attributes["shift"]
            (root,) = root.inputs
        return self._array(Node("view", (root,), value, shift=shift), value)

    def _array(self, node: Node, value: Tensor) -> Array:
        self.nodes.append(node)
        return Array(self, node, value)

    # --- ranks --------------------------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        return Backend.ranks.size

    def maximum(self, x: Array) -> tuple[Array]:
        """Over the ranks."""
        return (x if self.size == 1 else self.trace("maximum", lambda mine: Backend.ranks.maximum(mine)[0], x),)

    def total(self, x: Array) -> Array:
        return x if self.size == 1 else self.trace("total", Backend.total, x)

    # --- in smaller operations, which become part of kernels ----------------------------------------------------------

    def grids(self, x: Array, axes: tuple[int, ...], bits: int, batch: bool) -> tuple[Array, Array]:
        return grids.grids(self, x, axes, bits, batch)

    def operands(self, a: Array, b: Array, work: int, groups: int = 1, layout: str = "") -> tuple[Array, Array]:
        kind = Backend.kind(a, b, work, groups, layout)
        return self._cut(a, kind), self._cut(b, kind)

    def operand_like(self, a: Array, b: Array) -> Array:
        return self._cut(a, b.dtype)

    def _cut(self, q: Array, kind: torch.dtype) -> Array:
        if kind == torch.int8:
            return self.stack(int8.cut(self, q), 0)
        return (self.int16(q) if kind == torch.int16 else self.f64(q))[None]

    def matmul(self, a: Array, b: Array) -> Array:
        if a.dtype == torch.float32:
            a, b = self.f64(a), self.f64(b)
            return self._product(sums.exact(a.value, b.value), operator.matmul, a, b)
        if slices.large(a, b):
            return self.trace("product", slices.product, a, b)
        if a.dtype != torch.int8:
            return self._product(sums.exact(a.value, b.value), slices.products, a, b)[0]
        parts = self.trace("products", slices.products, a, b)
        return int8.joined(*(self.f64(parts[index]) for index in range(3)))

    def rounded_matmul(self, a: Array, b: Array, units: Array, plus: Array | None) -> Array:
        finish = [each.value for each in (units, plus) if each is not None]
        return self._product(sums.rounding(a.value, b.value, *finish), Backend.rounded_matmul, a, b, units, plus)

    def _product(self, stages: Sequence[Any] | None, function: Callable, *arguments: Array | None) -> Array:
        """A product of matrices in stages, or a function of PyTorch where there are none."""
        if stages is None:
            return self.trace("call", function, *arguments)
        value = function(*(each if each is None else each.value for each in arguments)).contiguous()
        inputs = tuple(each.node for each in arguments if each is not None)
        return self._array(Node("product", inputs, value, stages=stages), value)


def _arrays_in(given: Any) -> Iterator[Array]:
    if isinstance(given, Array):
        yield given
    elif isinstance(given, (tuple, list)):
        for each in given:
            yield from _arrays_in(each)


def _in_one_memory(a: Tensor, b: Tensor) -> bool:
    return a.dtype == b.dtype and b.numel() > 0 and a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
