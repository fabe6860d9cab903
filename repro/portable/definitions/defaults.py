"""Default bodies of the backend's methods: a framework overrides what differs."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from repro.portable.definitions.grids import grids
from repro.portable.definitions.ranks import SINGLE_PROCESS
from repro.portable.definitions.xp import Array, Axes, Backend


class Defaults:
    """Methods as most frameworks and tracers have them."""

    nan, inf = math.nan, math.inf
    ranks: Any = SINGLE_PROCESS
    engine = "float64"

    def f64(self: Backend, x: Array) -> Array:
        return self.cast(x, "float64")

    def f32(self: Backend, x: Array) -> Array:
        return self.cast(x, "float32")

    def integer(self: Backend, x: Array) -> Array:
        return self.cast(x, "int32")

    def int64(self: Backend, x: Array) -> Array:
        return self.cast(x, "int64")

    def int8(self: Backend, x: Array) -> Array:
        return self.cast(x, "int8")

    def int16(self: Backend, x: Array) -> Array:
        return self.cast(x, "int16")

    def shift_left(self, x: Array, bits: int) -> Array:
        return x << bits

    def shift_right(self, x: Array, bits: int) -> Array:
        return x >> bits

    grids = grids

    def maximum_of(self, x: Array) -> Array:
        return x.max(-1, keepdims=True)

    def multiply_add(self, a: Array, b: Array, c: Array) -> Array:
        return a * b + c

    def operand_like(self: Backend, a: Array, b: Array) -> Array:
        return self.cast(a, b.dtype)

    def rounded_convolve(self: Backend, q: Array, w: Array, unit: Array, plus: Array | None, *how: Any) -> Array:
        y = self.convolve(q, w, *how)
        return self.r32(y * unit if plus is None else self.multiply_add(y, unit, self.f64(plus)))

    def rounded_convolve_back(self: Backend, g: Array, w: Array, image: Axes, unit: Array, *how: Any) -> Array:
        return self.r32(self.convolve_back(g, w, image, *how) * unit)

    def transpose(self, x: Array) -> Array:
        return x.swapaxes(-1, -2)

    def take_rows(self, table: Array, index: Array) -> Array:
        return table[index]

    def one_hot(self: Backend, index: Array, classes: int) -> Array:
        return self.f64(self.counting(index, classes) == index[:, None])

    def causal(self, like: Array, rows: int, columns: int) -> Array:  # noqa: ARG002
        return np.tril(np.ones((rows, columns), bool), columns - rows)

    def at(self, x: Array, place: int, axis: int) -> Array:
        return x[..., place : place + 1] if axis == -1 else x[..., place : place + 1, :]

    def repeat(self, count: int, step: Callable[[int, Any], Any], state: Any) -> Any:
        for number in range(count):
            state = step(number, state)
        return state

    def repeat_while(self, going: Callable[[Any], Any], step: Callable[[Any], Any], state: Any) -> Any:
        while going(state):
            state = step(state)
        return state

    def total(self, x: Array) -> Array:
        return self.ranks.total(x)[0]

    def of_rank(self: Backend, x: Array) -> Array:
        return self.reshape(x, (self.ranks.size, -1, *x.shape[1:]))[self.ranks.rank]
