"""Registry of definitions, and the kind of each primitive."""

import gc
from collections.abc import Callable
from functools import cache
from typing import Any

from jax._src import core
from jax._src.interpreters import mlir

from repro.portable.modes.common import loading
from repro.portable.modes.common.precision import handed
from repro.portable.modes.jax.dispatcher.exact import CALLS, CHOOSES, EXACT, INTEGERS, MOVING

DEFINITIONS = (
    "functions",
    "incomplete",
    "products",
    "convolution",
    "sums",
    "windows",
    "scatter",
    "linalg",
    "spectral",
    "complexes",
    "fourier",
    "sparse",
    "collectives",
    "random",
)
"""The files of operations/ that define primitives."""

Rule = Callable[..., Any]
Definition = Callable[..., Any]

definitions: dict[str, Definition] = {}
"""Functions of arrays and of a primitive's parameters, by its name."""
complex_definitions: dict[str, Definition] = {}
"""Functions of complex arrays, likewise; the results of some are real."""
integer_definitions: dict[str, Definition] = {}
"""Functions of integers, likewise: they give what JAX's own rules give."""
rules: dict[str, Rule] = {}
"""Lowering rules by the primitive's name; the first parameter lowers a definition, see gate.py."""
guards: dict[str, Callable[..., str]] = {}
"""Functions that say why a primitive is refused with some parameters, by its name; "" if it is not."""


def define(*names: str) -> Callable[[Definition], Definition]:
    """Registers a function that replaces primitives of floating-point numbers."""

    def register(function: Definition) -> Definition:
        for name in names:
            assert name not in definitions, name
            definitions[name] = handed(function)
        return function

    return register


def define_complex(*names: str) -> Callable[[Definition], Definition]:
    """Registers a function that replaces primitives of complex numbers."""

    def register(function: Definition) -> Definition:
        complex_definitions.update(dict.fromkeys(names, handed(function)))
        return function

    return register


def define_integers(*names: str) -> Callable[[Definition], Definition]:
    """Registers a function that computes exact primitives of integers, with fewer of XLA's operations."""

    def register(function: Definition) -> Definition:
        integer_definitions.update(dict.fromkeys(names, function))
        return function

    return register


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Registers a lowering rule of primitives of floating-point numbers, which no function of arrays can give."""

    def register(made: Rule) -> Rule:
        rules.update(dict.fromkeys(names, made))
        return made

    return register


def guard(*names: str) -> Callable[[Callable[..., str]], Callable[..., str]]:
    """Registers a function of the parameters that says why primitives, else exact or defined, are refused with some."""

    def register(function: Callable[..., str]) -> Callable[..., str]:
        guards.update(dict.fromkeys(names, function))
        return function

    return register


@cache
def load() -> None:
    """Imports the definitions."""
    loading.load(__package__, DEFINITIONS)


def allowed_name(name: str) -> str:
    """The name by which a user lets a primitive through: `scatter_add` of `scatter-add`."""
    return name.replace("-", "_")


def lowered_names() -> set[str]:
    """The names of all primitives that JAX can lower."""
    tables = (mlir._lowerings, *mlir._platform_specific_lowerings.values())
    return {allowed_name(primitive.name) for table in tables for primitive in table}


def all_names() -> set[str]:
    """The names of all primitives of the modules that are loaded."""
    made = (each for each in gc.get_objects() if isinstance(each, core.Primitive))
    return lowered_names() | {allowed_name(primitive.name) for primitive in made}


def kind_of(name: str) -> str:
    """What becomes of a primitive of floating-point numbers. "integers" has JAX's own rule for integers alone."""
    load()
    guarded = "guarded" if name in guards else ""
    if name in CALLS:
        return "calls"
    if name in definitions:
        return guarded or "defined"
    if name in rules:
        return "rule"
    if name in MOVING:
        return "moving"
    if name in CHOOSES or name in EXACT:
        return guarded or "exact"
    return "integers" if name in INTEGERS else "refused"
