"""Tracer of definitions over NumPy's arrays, which reduce some axes alone."""

from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from repro.portable.backends.numpy import Backend
from repro.portable.compiler import tracer
from repro.portable.compiler.nodes import REDUCTIONS, Node, UnknownError
from repro.portable.compiler.tracer import Array


class Tracer(tracer.Tracer):
    """A tracer of definitions that reduce these axes, which stay with size 1. UnknownError for what is no element of the others."""

    backend, ranks, engine = Backend, Backend.ranks, Backend.engine
    result_type = staticmethod(np.result_type)

    def __init__(self, axes: tuple[int, ...]) -> None:
        super().__init__()
        self.axes = axes
        self.known = WeakValueDictionary()  # what the definition has dropped takes no memory

    def trace(self, name: str, function: Callable, *arguments: Any) -> Any:
        if name in REDUCTIONS:
            x, axes = arguments if len(arguments) == 2 else (*arguments, (-1,))
            if tuple(sorted(axis % len(x.shape) for axis in axes)) != self.axes:
                raise UnknownError(f"{name} along {axes}")
        return super().trace(name, function, *arguments)

    def call(self, name: str, function: Callable, *arguments: Any) -> list[Array]:
        if name != "tables":
            raise UnknownError(name)
        _, *how = arguments
        return [self.array(Node("constant", (), table), table) for table in function(None, *how)]

    def total(self, x: Array) -> Array:
        return x
