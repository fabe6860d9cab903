"""Elementary and special functions, of float64.

A function takes a backend and an array of float64, of any shape, and returns float64. It is made of operations that
have one result on every processor: float64 + - * /, each rounded by itself, the square root, rounding to integers,
comparisons and bits. Errors are in the table of docs/reference/functions.md.

`bits=24` says that the arguments are numbers of float32, and that the result will be rounded to it: fewer terms do.
Where a product feeds a sum that is not exact, it does so in arithmetic.plus: a compiler that contracts the two must be
kept from it there, and nowhere else.
"""

from collections.abc import Callable
from functools import cache, wraps
from typing import Any

from repro.portable.definitions.bits import is_float64
from repro.portable.definitions.xp import Array, Backend

SINGLE, DOUBLE = 24, 53
"""Bits of float32 and of float64."""


@cache
def rounded(function: Callable[..., Array]) -> Callable[..., Array]:
    """A definition for arrays of any type: it computes in float64, and rounds once, to float32 unless they are float64."""

    @wraps(function)
    def definition(xp: Backend, *arrays: Array, **options: Any) -> Array:
        if is_float64(arrays[0]):
            return function(xp, *arrays, **options)
        result = function(xp, *map(xp.f64, arrays), bits=SINGLE, **options)
        return tuple(map(xp.f32, result)) if isinstance(result, tuple) else xp.f32(result)

    definition.of_elements = True  # type: ignore[attr-defined]
    return definition
