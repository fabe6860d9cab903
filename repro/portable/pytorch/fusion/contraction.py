"""Sums of products, as those of convolutions, compiled by LLVM: without copies of what a kernel meets.

Sums are exact, so their order is free: they are made in vectors, and several at once, which share what they read.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, reduce

import torch
from llvmlite import ir
from torch import Tensor

from repro.portable.pytorch.fusion.machine import F64, I32, I64, Compiled, Loop, compiled, started, vector_bits

REGISTERS = 12
"""Sums that are made at once, in vectors: of 16 registers that a processor has at least."""


@dataclass(frozen=True)
class Axis:
    """An axis that the operands share: its size, and its strides in each, 0 where one does not have it."""

    size: int
    a: int
    b: int


@dataclass(frozen=True)
class Limit:
    """Where a reduced axis ends: at the edges of the first operand, of so many rows.

    With r along the reduced axis and k along the kept one it meets the row start + at_kept k + at_reduced r.
    """

    reduced: int
    kept: int
    start: int
    at_kept: int
    at_reduced: int
    rows: int

    def needed(self, axes: Sequence[Axis]) -> bool:
        last = self.at_kept * (axes[self.kept].size - 1) + self.at_reduced * (axes[self.reduced].size - 1)
        return self.start < 0 or self.start + last >= self.rows


def contract(
    a: Tensor, b: Tensor, axes: tuple[Axis, ...], kept: int, limits: tuple[Limit, ...] = (), start: int = 0
) -> Tensor:
    """The sum of a b, both float64, over all axes but so many first ones: float64 of their sizes.

    a begins `start` numbers after its first one, or before it where a limit says what is not there.
    """
    y = torch.empty([axis.size for axis in axes[:kept]], dtype=torch.float64)
    loops = _compiled(axes, kept, limits)
    loops([a.data_ptr() + 8 * start, b.data_ptr(), y.data_ptr()], loops.threads())
    return y


@cache
def _compiled(axes: tuple[Axis, ...], kept: int, limits: tuple[Limit, ...]) -> Compiled:
    return _Contraction(axes, kept, [limit for limit in limits if limit.needed(axes)]).compiled


class _Contraction:
    def __init__(self, axes: Sequence[Axis], kept: int, limits: Sequence[Limit]) -> None:
        self.kept, self.limits = kept, {limit.reduced: limit for limit in limits}
        self.whole = {axis for limit in limits for axis in (limit.reduced, limit.kept)}
        """Axes of which a single step is made at once."""
        self.sizes = [axis.size for axis in axes]
        a, b = [axis.a for axis in axes], [axis.b for axis in axes]
        out = [math.prod(self.sizes[axis + 1 : kept]) if axis < kept else 0 for axis in range(len(axes))]
        self.strides = a, b, out
        self.lanes, self.vector = self._lanes(vector_bits() // 64)
        free = REGISTERS
        if self.vector in range(kept) and self.sizes[self.vector] % (2 * self.lanes) == 0:
            self.lanes, free = 2 * self.lanes, REGISTERS // 2
        self.tiles: dict[int, int] = {}
        for one, other in ((a, b), (b, a)):  # an axis that one does not have: what it reads there serves several sums
            sizes = {
                axis: _divisor(self.sizes[axis], free) for axis in range(kept)
                if axis not in {self.vector, *self.whole, *self.tiles} and one[axis] == 0 and other[axis]
            }  # fmt: skip
            if sizes:
                axis = max(sizes, key=sizes.__getitem__)
                self.tiles[axis] = sizes[axis]
                free //= sizes[axis]
        self.compiled = self._module()

    def _lanes(self, most: int) -> tuple[int, int]:
        """How many numbers are taken at once, and along which axis: they lie in a row, or are one and the same.

        One, along axis -1, where no axis is fit for more.
        """
        a, b, out = self.strides
        found = [(1, False, False, -1)]
        for axis, size in enumerate(self.sizes):
            in_a_row = {a[axis], b[axis]}
            if axis not in self.whole and (in_a_row == {1} or (in_a_row == {0, 1} and axis < self.kept)):
                fits = [count for count in (most, most // 2) if count > 1 and size % count == 0]
                found += [(count, axis < self.kept, out[axis] == 1, axis) for count in fits]
        lanes, *_, vector = max(found)
        return lanes, vector

    def _module(self) -> Compiled:
        self.build, function = started([F64, F64, F64])
        *self.memory, begin, end = function.args
        self.entry = self.build.block
        self.type = ir.VectorType(F64, self.lanes) if self.lanes > 1 else F64
        steps = {axis: self.tiles.get(axis, self.lanes if axis == self.vector else 1) for axis in range(self.kept)}
        counts = {axis: self.sizes[axis] // step for axis, step in steps.items()}
        # Vectors outermost, tiles innermost: what a kernel meets stays in the cache.
        order = sorted(counts, key=lambda axis: (axis != self.vector, axis in self.tiles))
        with self.build.if_then(self.build.icmp_signed("<", begin, end)), Loop(self.build, begin, end) as turn:
            index: dict[int, ir.Value] = {}
            for axis in reversed(order):
                index[axis] = self.build.mul(self.build.urem(turn, I64(counts[axis])), I64(steps[axis]))
                turn = self.build.udiv(turn, I64(counts[axis]))
            self._tile(index)
        self.build.ret_void()
        return compiled(function, math.prod(counts.values()), math.prod(self.sizes))

    def _tile(self, index: dict[int, ir.Value]) -> None:
        """The sums of one tile."""
        build = self.build
        places = list(itertools.product(*(range(size) for size in self.tiles.values())))
        sums = {}
        for place in places:
            with build.goto_block(self.entry):
                sums[place] = build.alloca(self.type)
            build.store(self._splat(F64(0.0)), sums[place])
        self._reduce(self.kept, index, sums)
        for place in places:
            value, where = build.load(sums[place]), self._place(2, index, place)
            if self.lanes == 1:
                build.store(value, where)
            elif self.vector >= self.kept:
                lanes = [build.extract_element(value, I32(lane)) for lane in range(self.lanes)]
                build.store(reduce(build.fadd, lanes), where)
            elif self.strides[2][self.vector] == 1:
                build.store(value, build.bitcast(where, self.type.as_pointer()), align=8)
            else:
                for lane in range(self.lanes):
                    there = build.gep(where, [I64(lane * self.strides[2][self.vector])])
                    build.store(build.extract_element(value, I32(lane)), there)

    def _reduce(self, axis: int, index: dict[int, ir.Value], sums: dict[tuple[int, ...], ir.Value]) -> None:
        build = self.build
        if axis in self.limits:
            begin, end = self._range(self.limits[axis], index)
            with build.if_then(build.icmp_signed("<", begin, end)), Loop(build, begin, end) as turn:
                self._reduce(axis + 1, index | {axis: turn}, sums)
            return
        if axis < len(self.sizes):
            step = self.lanes if axis == self.vector else 1
            with Loop(build, I64(0), I64(self.sizes[axis] // step)) as turn:
                self._reduce(axis + 1, index | {axis: build.mul(turn, I64(step))}, sums)
            return
        read: dict[tuple[int, ...], ir.Value] = {}
        for place, total in sums.items():
            factors = []
            for operand in (0, 1):
                own = tuple(where for where, tile in zip(place, self.tiles, strict=True) if self.strides[operand][tile])
                key = (operand, *own)
                if key not in read:
                    read[key] = self._read(operand, index, place)
                factors.append(read[key])
            product = build.fmul(*factors, flags=["contract"])  # exact, and so is the sum
            build.store(build.fadd(build.load(total), product, flags=["contract"]), total)

    def _range(self, limit: Limit, index: dict[int, ir.Value]) -> tuple[ir.Value, ir.Value]:
        """Of a reduced axis, between the edges."""
        build, step = self.build, limit.at_reduced
        row = build.add(I64(limit.start), build.mul(index[limit.kept], I64(limit.at_kept)))
        begin = build.sdiv(build.sub(I64(step - 1), row), I64(step))  # rounded up, where it is above 0
        end = build.sdiv(build.sub(I64(limit.rows + step - 1), row), I64(step))
        size = I64(self.sizes[limit.reduced])
        begin = build.select(build.icmp_signed(">", begin, I64(0)), begin, I64(0))
        return begin, build.select(build.icmp_signed("<", end, size), end, size)

    def _read(self, operand: int, index: dict[int, ir.Value], place: tuple[int, ...]) -> ir.Value:
        where = self._place(operand, index, place)
        if self.lanes == 1 or self.strides[operand][self.vector] == 0:
            return self._splat(self.build.load(where))
        return self.build.load(self.build.bitcast(where, self.type.as_pointer()), align=8)

    def _place(self, operand: int, index: dict[int, ir.Value], place: tuple[int, ...]) -> ir.Value:
        build, strides = self.build, self.strides[operand]
        offset: ir.Value = I64(sum(strides[axis] * at for axis, at in zip(self.tiles, place, strict=True)))
        for axis, value in index.items():
            if strides[axis]:
                offset = build.add(offset, build.mul(value, I64(strides[axis])))
        return build.gep(self.memory[operand], [offset])

    def _splat(self, value: ir.Value) -> ir.Value:
        if self.lanes == 1:
            return value
        build = self.build
        if isinstance(value, ir.Constant):
            return ir.Constant(self.type, [value] * self.lanes)
        single = build.insert_element(ir.Constant(self.type, ir.Undefined), value, I32(0))
        mask = ir.Constant(ir.VectorType(I32, self.lanes), [I32(0)] * self.lanes)
        return build.shuffle_vector(single, ir.Constant(self.type, ir.Undefined), mask)


def _divisor(size: int, most: int) -> int:
    return max(tile for tile in (1, 2, 3, 4, 5, 6) if tile <= most and size % tile == 0)
