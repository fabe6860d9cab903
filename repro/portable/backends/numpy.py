"""NumPy's arithmetic, as a backend.

What NumPy does here has one result on every processor: + - * / and the square root of IEEE 754, comparisons, bits, and
sums of integers that float64 holds. Functions of its own, which choose their instructions by the processor, are not called.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from repro.portable.definitions import convolution, xp
from repro.portable.definitions.grids import grids
from repro.portable.definitions.ranks import SINGLE_PROCESS
from repro.portable.definitions.xp import method
from repro.portable.numbers.constants import BELOW_TINY, SMALLEST

Array = Any
"""An array of NumPy."""


class Backend:
    """Of arrays in memory."""

    nan, inf = math.nan, math.inf
    ranks = SINGLE_PROCESS
    engine = "float64"

    # --- numbers ------------------------------------------------------------------------------------------------------

    @staticmethod
    def f64(x: Array) -> Array:
        return x.astype(np.float64, copy=False)

    @staticmethod
    def f32(x: Array) -> Array:
        return x.astype(np.float32, copy=False)

    @staticmethod
    def r32(x: Array) -> Array:
        found = np.asarray(x.astype(np.float32))
        found[np.abs(found) <= np.float32(BELOW_TINY)] = 0.0
        return found

    rint: Any = staticmethod(np.rint)
    floor: Any = staticmethod(np.floor)
    sqrt: Any = staticmethod(np.sqrt)

    @staticmethod
    def where(condition: Array, a: Any, b: Any) -> Array:
        like = next((each.dtype for each in (a, b) if isinstance(each, np.ndarray | np.generic)), None)
        return np.where(condition, *(np.asarray(each, like) for each in (a, b)))

    @staticmethod
    def clip(x: Array, low: float, high: float) -> Array:
        return np.clip(x, x.dtype.type(low), x.dtype.type(high))

    @staticmethod
    def integer(x: Array) -> Array:
        return x.astype(np.int32)

    @staticmethod
    def int8(x: Array) -> Array:
        return x.astype(np.int8)

    @staticmethod
    def int16(x: Array) -> Array:
        return x.astype(np.int16)

    @staticmethod
    def shift_right(x: Array, bits: int) -> Array:
        return x >> x.dtype.type(bits)

    @staticmethod
    def pattern(x: Array) -> Array:
        return x.view(np.int64)

    @staticmethod
    def number(pattern: Array) -> Array:
        return pattern.view(np.float64)

    # --- grids --------------------------------------------------------------------------------------------------------

    @staticmethod
    def exponent_above(x: Array, axes: tuple[int, ...]) -> Array:
        most = (x.view(np.int32) & np.int32(0x7FFFFFFF)).max(axes, keepdims=True, initial=0)
        return np.clip((most >> 23) - 126, SMALLEST, 128).astype(np.int32)

    @staticmethod
    def power(e: Array) -> Array:
        return ((e + 127).astype(np.int32) << np.int32(23)).view(np.float32)

    @staticmethod
    def exponent(x: Array) -> Array:
        return ((x.view(np.int64) >> 52) - 1023).astype(np.int32)

    @staticmethod
    def power_of_two(e: Array) -> Array:
        return ((e.astype(np.int64) + 1023) << 52).view(np.float64)

    grids = method(grids)

    # --- sums and products --------------------------------------------------------------------------------------------

    @staticmethod
    def sum(x: Array, axes: tuple[int, ...]) -> Array:
        return x.sum(axes, keepdims=True, dtype=np.float64)

    @staticmethod
    def largest(x: Array, axes: tuple[int, ...]) -> Array:
        return x.max(axes, keepdims=True, initial=0)

    @staticmethod
    def maximum_of(x: Array) -> Array:
        return x.max(-1, keepdims=True)

    @staticmethod
    def multiply_add(a: Array, b: Array, c: Array) -> Array:
        return a * b + c

    @staticmethod
    def operands(a: Array, b: Array, work: int, groups: int = 1, layout: str = "") -> tuple[Array, Array]:
        return a, b

    @staticmethod
    def operand_like(a: Array, b: Array) -> Array:
        return a.astype(b.dtype, copy=False)

    @staticmethod
    def matmul(a: Array, b: Array) -> Array:
        return np.matmul(a.astype(np.float64, copy=False), b.astype(np.float64, copy=False))

    @staticmethod
    def rounded_matmul(a: Array, b: Array, units: Array, plus: Array | None) -> Array:
        total = Backend.matmul(a, b) * units
        return Backend.r32(total if plus is None else total + plus.astype(np.float64))

    convolve, convolve_with = method(convolution.convolve), method(convolution.convolve_with)
    convolve_back = method(convolution.convolve_back)

    # --- shapes -------------------------------------------------------------------------------------------------------

    reshape: Any = staticmethod(np.reshape)
    stack: Any = staticmethod(np.stack)
    broadcast_to: Any = staticmethod(np.broadcast_to)
    permute: Any = staticmethod(np.transpose)
    concatenate: Any = staticmethod(np.concatenate)

    @staticmethod
    def transpose(x: Array) -> Array:
        return x.swapaxes(-1, -2)

    @staticmethod
    def pad(x: Array, edges: Sequence[tuple[int, int]], value: float = 0.0) -> Array:
        return np.pad(x, edges, constant_values=value)

    # --- tables, places -----------------------------------------------------------------------------------------------

    @staticmethod
    def tables(like: Array, made: Callable[..., Sequence[Any]], *arguments: Any) -> list[Array]:
        return list(_made(made, *arguments))

    @staticmethod
    def take(table: Array, index: Array) -> Array:
        return table[index]

    @staticmethod
    def take_rows(table: Array, index: Array) -> Array:
        return table[index]

    @staticmethod
    def add_at(index: Array, x: Array, rows: int) -> Array:
        found = np.zeros((rows, x.shape[1]))
        np.add.at(found, index, x.astype(np.float64))
        return found

    @staticmethod
    def one_hot(index: Array, classes: int) -> Array:
        return (np.arange(classes) == index[:, None]).astype(np.float64)

    @staticmethod
    def causal(like: Array, rows: int, columns: int) -> Array:
        return np.tril(np.ones((rows, columns), bool), columns - rows)

    @staticmethod
    def counting(like: Array, size: int) -> Array:
        return np.arange(size)

    # --- matrices, step by step ---------------------------------------------------------------------------------------

    @staticmethod
    def at(x: Array, place: int, axis: int) -> Array:
        return x[..., place : place + 1] if axis == -1 else x[..., place : place + 1, :]

    @staticmethod
    def take_along(x: Array, index: Array, axis: int) -> Array:
        return np.take_along_axis(x, index, axis)

    @staticmethod
    def repeat(count: int, step: Callable[[int, Any], Any], state: Any) -> Any:
        for number in range(count):
            state = step(number, state)
        return state

    @staticmethod
    def repeat_while(going: Callable[[Any], Any], step: Callable[[Any], Any], state: Any) -> Any:
        while going(state):
            state = step(state)
        return state

    @staticmethod
    def argsort(x: Array) -> Array:
        return np.argsort(x, -1, kind="stable")

    # --- ranks --------------------------------------------------------------------------------------------------------

    @classmethod
    def total(cls, x: Array) -> Array:
        return cls.ranks.total(x)[0]

    @classmethod
    def of_rank(cls, x: Array) -> Array:
        return np.split(x, cls.ranks.size)[cls.ranks.rank]


@cache
def _made(made: Callable[..., Sequence[Any]], *arguments: Any) -> Sequence[Array]:
    return [np.asarray(table) for table in made(*arguments)]


if TYPE_CHECKING:
    _: xp.Backend = Backend
