"""Tracer of definitions over PyTorch's tensors."""

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from repro.portable.backends import pytorch_slices as slices
from repro.portable.backends.pytorch import Backend
from repro.portable.compiler import tracer
from repro.portable.compiler.nodes import CONSTANT, Node, mapped
from repro.portable.compiler.tracer import Array
from repro.portable.definitions import slices as int8
from repro.portable.kernels import pytorch as compiler

if compiler.available:
    from repro.portable.kernels.pytorch import sums


class Tracer(tracer.Tracer):
    """Kernels do not compute all: the rest are views, and calls of PyTorch's functions."""

    backend = Backend
    result_type = staticmethod(torch.result_type)

    def __init__(self) -> None:
        super().__init__()
        self.ranks = self

    def call(self, name: str, function: Callable, *arguments: Any) -> Any:
        inputs, values = (mapped(arguments, Array, operator.attrgetter(each)) for each in ("node", "value"))
        value = function(*values)
        if name in CONSTANT:
            return mapped(value, Tensor, lambda tensor: self.array(Node("constant", (), tensor), tensor))
        if not isinstance(value, Tensor):
            call = Node("call", inputs, None, function)
            self.nodes.append(call)
            parts = enumerate(value)
            return [self.array(Node("item", (call,), each, operator.itemgetter(index)), each) for index, each in parts]
        for source in _arrays_in(arguments):
            if _in_one_memory(source.value, value):
                return self._view(source, value)
        return self.array(Node("call", inputs, value, function), value)

    def _view(self, source: Array, value: Tensor) -> Array:
        """An array in the memory of another one."""
        if source.node.operation == "constant":
            return self.array(Node("constant", (), value), value)
        shift = value.storage_offset() - source.value.storage_offset()
        root = source.node
        if root.operation == "view":
            shift += root.attributes["shift"]
            (root,) = root.inputs
        return self.array(Node("view", (root,), value, shift=shift), value)

    def concatenate(self, arrays: Sequence[Array], axis: int) -> Array:
        """Arrays as the parts of one, each of which kernels write to its place."""
        value, parts, at = Backend.concatenate([each.value for each in arrays], axis), [], 0
        for each in arrays:
            place = value.narrow(axis, at, each.shape[axis])
            parts.append(Node("part", (each.node,), place, shift=place.storage_offset()))
            at += each.shape[axis]
        self.nodes += parts
        result = self.array(Node("joined", tuple(parts), value), value)
        for part in parts:
            part.attributes["joined"] = result.node
        return result

    # --- ranks --------------------------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        return Backend.ranks.size

    def maximum(self, x: Array) -> tuple[Array]:
        """The maximum over the ranks."""
        return (x if self.size == 1 else self.trace("maximum", lambda mine: Backend.ranks.maximum(mine)[0], x),)

    def total(self, x: Array) -> Array:
        return x if self.size == 1 else self.trace("total", Backend.total, x)

    # --- in smaller operations, which become part of kernels ----------------------------------------------------------

    def operands(self, a: Array, b: Array, work: int, groups: int = 1, layout: str = "") -> tuple[Array, Array]:
        kind = Backend.kind(a.value, b.value, work, groups, layout)
        return self._cut(a, kind), self._cut(b, kind)

    def operand_like(self, a: Array, b: Array) -> Array:
        return self._cut(a, b.dtype)

    def _cut(self, q: Array, kind: torch.dtype) -> Array:
        if kind == torch.int8:
            return self.stack(int8.cut(self, q), 0)
        return (self.int16(q) if kind == torch.int16 else self.f64(q))[None]

    def matmul(self, a: Array, b: Array) -> Array:
        if a.dtype == torch.float32:
            kind = self.int16 if sums.paired(a.value, b.value) else self.f64
            a, b = kind(a), kind(b)
            return self._product(sums.exact(a.value, b.value), _exact, a, b)
        if slices.large(a, b):
            return self.trace("product", slices.product, a, b)
        if a.dtype != torch.int8:
            return self._product(sums.exact(a.value, b.value), slices.products, a, b)[0]
        parts = self.trace("products", slices.products, a, b)
        return int8.joined(*(self.f64(parts[index]) for index in range(3)))

    def rounded_matmul(self, a: Array, b: Array, units: Array, plus: Array | None) -> Array:
        finish = [each.value for each in (units, plus) if each is not None]
        return self._product(sums.rounding(a.value[0], b.value[0], *finish), Backend.rounded_matmul, a, b, units, plus)

    def _product(self, stages: Sequence[Any] | None, function: Callable, *arguments: Array | None) -> Array:
        """A product of matrices in stages, or a function of PyTorch where there are none."""
        if stages is None:
            return self.trace("call", function, *arguments)
        value = function(*(each if each is None else each.value for each in arguments))
        columns, made = value.shape[-1], stages[-1].shape[-1]
        inputs = tuple(each.node for each in arguments if each is not None)
        value = functional.pad(value, (0, made - columns)).contiguous()
        result = self.array(Node("product", inputs, value, stages=stages), value)
        return result if made == columns else result[..., :columns]


def _exact(a: Tensor, b: Tensor) -> Tensor:
    """The product of matrices of integers, float64."""
    return a.double() @ b.double()


def _arrays_in(given: Any) -> Iterator[Array]:
    if isinstance(given, Array):
        yield given
    elif isinstance(given, (tuple, list)):
        for each in given:
            yield from _arrays_in(each)


def _in_one_memory(a: Tensor, b: Tensor) -> bool:
    return a.dtype == b.dtype and b.numel() > 0 and a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
