"""NumPy's arithmetic, as a backend.

What NumPy does here has one result on every processor: + - * / and the square root of IEEE 754, comparisons, bits, and
sums of integers that float64 holds. Functions of its own, which choose their instructions by the processor, are not called.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from repro.portable.definitions import convolution
from repro.portable.definitions.defaults import Defaults
from repro.portable.numbers.constants import BELOW_TINY

Array = Any
"""An array of NumPy."""


class NumPy(Defaults):
    """NumPy's arithmetic over arrays in memory."""

    # --- numbers ------------------------------------------------------------------------------------------------------

    @staticmethod
    def cast(x: Array, dtype: Any) -> Array:
        return x.astype(dtype, copy=False)

    @staticmethod
    def r32(x: Array) -> Array:
        rounded = np.asarray(x.astype(np.float32))
        rounded[np.abs(rounded) <= np.float32(BELOW_TINY)] = 0.0
        return rounded

    rint, floor, sqrt = staticmethod(np.rint), staticmethod(np.floor), staticmethod(np.sqrt)

    @staticmethod
    def where(condition: Array, a: Any, b: Any) -> Array:
        like = next((each.dtype for each in (a, b) if isinstance(each, np.ndarray | np.generic)), None)
        return np.where(condition, *(np.asarray(each, like) for each in (a, b)))

    @staticmethod
    def clip(x: Array, low: float, high: float) -> Array:
        return np.clip(x, x.dtype.type(low), x.dtype.type(high))

    @staticmethod
    def pattern(x: Array) -> Array:
        return x.view(np.int64 if x.dtype == np.float64 else np.int32)

    @staticmethod
    def number(pattern: Array) -> Array:
        return pattern.view(np.float64 if pattern.dtype == np.int64 else np.float32)

    # --- sums and products --------------------------------------------------------------------------------------------

    @staticmethod
    def sum(x: Array, axes: tuple[int, ...]) -> Array:
        return x.sum(axes, keepdims=True, dtype=np.float64)

    @staticmethod
    def largest(x: Array, axes: tuple[int, ...]) -> Array:
        return x.max(axes, keepdims=True, initial=0)

    @staticmethod
    def operands(a: Array, b: Array, work: int, groups: int = 1, layout: str = "") -> tuple[Array, Array]:
        return a, b

    @staticmethod
    def matmul(a: Array, b: Array) -> Array:
        return np.matmul(a.astype(np.float64, copy=False), b.astype(np.float64, copy=False))

    def rounded_matmul(self, a: Array, b: Array, units: Array, plus: Array | None) -> Array:
        total = self.matmul(a, b) * units
        return self.r32(total if plus is None else total + plus.astype(np.float64))

    convolve, convolve_with = convolution.convolve, convolution.convolve_with
    convolve_back = convolution.convolve_back

    # --- shapes -------------------------------------------------------------------------------------------------------

    reshape: Any = staticmethod(np.reshape)
    stack, broadcast_to = staticmethod(np.stack), staticmethod(np.broadcast_to)
    permute, concatenate = staticmethod(np.transpose), staticmethod(np.concatenate)

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
    def add_at(index: Array, x: Array, rows: int) -> Array:
        total, order = np.zeros((rows, x.shape[1])), np.argsort(index, kind="stable")
        there, begins = np.unique(index[order], return_index=True)
        if len(there):
            total[there] = np.add.reduceat(x[order].astype(np.float64, copy=False), begins, 0)
        return total

    @staticmethod
    def largest_at(index: Array, x: Array, rows: int) -> Array:
        most = np.zeros((rows, x.shape[1]), x.dtype)
        for column in range(x.shape[1]):  # which is fast for one axis
            np.maximum.at(most[:, column], index, x[:, column])
        return most

    @staticmethod
    def counting(like: Array, size: int) -> Array:
        return np.arange(size)

    @staticmethod
    def take_along(x: Array, index: Array, axis: int) -> Array:
        return np.take_along_axis(x, index, axis)

    @staticmethod
    def argsort(x: Array) -> Array:
        return np.argsort(x, -1, kind="stable")


@cache
def _made(made: Callable[..., Sequence[Any]], *arguments: Any) -> Sequence[Array]:
    return [np.asarray(table) for table in made(*arguments)]


Backend = NumPy()
