"""The parts of a framework that the library's functions need, and arguments as its arrays."""

import math
from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import numpy as np

from repro.portable.arguments import (
    Edges,
    Pair,
    check_floats,
    check_integer,
    check_integers,
    check_range,
    check_shapes,
)
from repro.portable.definitions.grids import Operation
from repro.portable.definitions.xp import Array, Backend

SEEDS, STEPS = 2**62, 2**32
"""The number of seeds and of steps that a dropout can have."""


class Framework(Protocol):
    """The parts of a framework that functions need."""

    xp: Backend

    def apply(self, operation: Operation, *arrays: Array | None, **options: Any) -> Any:
        """The result of an operation, with its gradient."""

    def array(self, value: Any) -> Array:
        """A user's argument as an array."""

    def int64(self, value: Any) -> Array:
        """A user's number, or array of no dimension, as int64."""

    def known(self, array: Array) -> bool:
        """True if an array's numbers can be read now, outside of what is traced or compiled."""

    def constant(self, array: Array) -> Array:
        """An array through which no gradient goes."""


P = ParamSpec("P")
R = TypeVar("R")


def bind(framework: Framework, module: str, function: Callable[Concatenate[Framework, P], R]) -> Callable[P, R]:
    """A function that takes a framework first as one of a framework's module."""

    @wraps(function)
    def bound(*arguments: P.args, **options: P.kwargs) -> R:
        return function(framework, *arguments, **options)

    whole = signature(function)
    bound.__signature__ = whole.replace(parameters=list(whole.parameters.values())[1:])  # type: ignore[attr-defined]
    bound.__module__ = module
    return bound


def floats(fw: Framework, function: str, **arrays: Any) -> list[Array]:
    """These arguments as float32 arrays; None stays."""
    result = {name: None if array is None else fw.array(array) for name, array in arrays.items()}
    check_floats(function, **result)
    return list(result.values())


def indices(fw: Framework, function: str, name: str, array: Any, size: int) -> tuple[Array, Array | None]:
    """This argument as int32, and None: it is from 0 to size - 1.

    Compiled code raises no errors. There it is returned with bools, which say where it is.
    """
    array = fw.array(array)
    check_integers(function, name, array)
    if not fw.known(array):
        numbers = fw.int64(array)
        return fw.xp.integer(array), (numbers >= 0) & (numbers < size)
    numbers = np.asarray(array)
    check_range(function, name, int(numbers.min()), int(numbers.max()), size)
    return fw.xp.integer(array), None


def or_nan(fw: Framework, x: Array, inside: Array | None) -> Array:
    """x [..., C], and NaN with a gradient of NaN where an index [...] is not inside; None is inside everywhere."""
    return x if inside is None else x * fw.xp.f32(fw.xp.where(inside, 1.0, math.nan))[..., None]


def whole(fw: Framework, function: str, name: str, value: Any, size: int) -> Array:
    """This argument as int64 of no dimension; outside compiled code it must be from 0 to size - 1."""
    if isinstance(value, (int, float)):
        check_integer(function, name, value, size)
    else:
        value = fw.array(value)
        check_integers(function, name, value)
        check_shapes(function, (), **{name: value})
        if fw.known(value):
            check_integer(function, name, int(value), size)
    return fw.int64(value)


def padded(xp: Backend, x: Array, around: Edges, value: float) -> tuple[Array, Pair]:
    """Images, and the padding that an operation adds to them: the same on both sides, or none, and it was added."""
    (top, bottom), (left, right) = around
    if top == bottom and left == right:
        return x, (top, left)
    return xp.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), value), (0, 0)
