"""Tables of what replaces PyTorch's operations, and the decorators that fill them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from repro.portable.modes.common.precision import handed

Function = Callable[..., Any]


@dataclass(frozen=True)
class Definition:
    """The replacement of an operation."""

    function: Function
    composed: bool
    """True if it calls other operations, which are dispatched again; otherwise what it calls is PyTorch's own."""
    integers: bool
    """True if it takes integers, too; otherwise they pass on to PyTorch's own kernel."""


definitions: dict[str, Definition] = {}
"""Definitions by name and overload, as `mm` or `sum.dim_IntList`."""
complex_definitions: dict[str, Definition] = {}
"""Definitions of complex numbers, likewise."""
sparse_definitions: dict[str, Definition] = {}
"""Definitions of sparse tensors, likewise."""
takes_complex: set[str] = set()
"""Names of operations, all forms of them, with a definition of complex numbers."""
takes_sparse: set[str] = set()
"""Names of operations with a definition of sparse tensors, likewise."""

replacements: dict[str, Function] = {}
"""Functions in the place of composite operations, by name and overload."""
specials: dict[str, Function] = {}
"""Makers of kernels, by the name of all overloads."""


def define(*names: str, integers: bool = False) -> Callable[[Function], Function]:
    """Registers a function of operations that are exact as PyTorch has them."""
    return _registration(definitions, names, composed=False, integers=integers)


def compose(*names: str, integers: bool = False) -> Callable[[Function], Function]:
    """Registers a function that is made of other operations, which have definitions of their own."""
    return _registration(definitions, names, composed=True, integers=integers)


def define_complex(*names: str) -> Callable[[Function], Function]:
    """Registers a function of complex64 and complex128, of operations that are exact as PyTorch has them."""
    return _registration(complex_definitions, names, composed=False, integers=False)


def define_sparse(*names: str) -> Callable[[Function], Function]:
    """Registers a function of tensors of which some are sparse, of operations that are exact as PyTorch has them."""
    return _registration(sparse_definitions, names, composed=False, integers=False)


def replace(*names: str) -> Callable[[Function], Function]:
    """Registers a function in the place of PyTorch's own way to make an operation of others, above autograd."""

    def register(function: Function) -> Function:
        replacements.update(dict.fromkeys(names, handed(function)))
        return function

    return register


def special(*bases: str) -> Callable[[Function], Function]:
    """Registers a function that makes the kernel of an operation and its name, for all overloads of these names."""

    def register(function: Function) -> Function:
        specials.update(dict.fromkeys(bases, function))
        return function

    return register


def _registration(
    table: dict[str, Definition], names: tuple[str, ...], composed: bool, integers: bool
) -> Callable[[Function], Function]:
    def register(function: Function) -> Function:
        for name in names:
            assert name not in table, name
            table[name] = Definition(handed(function), composed, integers)
        return function

    return register
