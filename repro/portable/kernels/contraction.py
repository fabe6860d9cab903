"""Float64 sums of products as kernels.

Sums of products, as those of convolutions, compiled by LLVM: without copies of what a kernel meets.

Sums are exact, so their order is free: they are made in vectors, and several at once, which share what they read. Here
all is float64; pairs.py makes the same sums of int16.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, reduce

from llvmlite import ir

from repro.portable.kernels.machine import F32, F64, I32, I64, Kernel, Loop, splat, started, vector_bits
from repro.portable.numbers.constants import BELOW_TINY

REGISTERS = 12
"""Sums that are made at once, in vectors: of 16 registers that a processor has at least."""
Place = tuple[int, ...]
Index = dict[int, ir.Value]


@dataclass(frozen=True)
class Axis:
    """An axis that the operands share: its size, and its strides in each, 0 where one does not have it."""

    size: int
    a: int
    b: int


@dataclass(frozen=True)
class Limit:
    """The limit of a reduced axis: the edges of the first operand, which has `rows` rows.

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


@dataclass(frozen=True, eq=False)
class Sums:
    """The sums of a b over all axes but the first `kept` ones; where a limit ends an axis, a has zeros.

    The axes begin `start` numbers after a's first one, or before it where a limit says what is not there.
    """

    axes: tuple[Axis, ...]
    kept: int
    limits: tuple[Limit, ...] = ()
    start: int = 0
    finish: tuple[tuple[int, ...], ...] = ()
    """The strides of arrays that follow a and b, along the axes, 0 to 2 of them.

    First a power of two, float64, that a sum is multiplied by, then a number, float32, that is added. With one of them
    the result is rounded as r32 does, float32; with none it is exact, float64.
    """


@cache
def in_float64(sums: Sums) -> Kernel:
    """Kernel over arrays a and b, both float64, those that follow, and the result of the kept sizes."""
    return Contraction(sums).kernel()


class Contraction:
    operand: ir.Type = F64
    registers = REGISTERS

    def __init__(self, sums: Sums) -> None:
        axes, self.kept = sums.axes, sums.kept
        limits = [limit for limit in sums.limits if limit.needed(axes)]
        self.limits = {limit.reduced: limit for limit in limits}
        self.whole = {axis for limit in limits for axis in (limit.reduced, limit.kept)}
        """Axes of which a single step is made at once."""
        self.sizes = [axis.size for axis in axes]
        a, b = [axis.a for axis in axes], [axis.b for axis in axes]
        kept = self.kept
        out = [math.prod(self.sizes[axis + 1 : kept]) if axis < kept else 0 for axis in range(len(axes))]
        self.strides, self.starts = (a, b, out, *sums.finish), (sums.start, 0, 0, 0, 0)
        self.lanes, self.vector = self._lanes()
        free = self.registers
        if self.vector in range(self.kept) and self.sizes[self.vector] % (2 * self.lanes) == 0:  # two, side by side
            self.lanes, free = 2 * self.lanes, free // 2
        self.tiles: dict[int, int] = {}
        for one, other in ((a, b), (b, a)):  # an axis that one does not have: what it reads there serves several sums
            sizes = {
                axis: _divisor(self.sizes[axis], free)
                for axis in range(kept)
                if axis not in {self.vector, *self.whole, *self.tiles} and one[axis] == 0 and other[axis]
            }
            if sizes:
                axis = max(sizes, key=sizes.__getitem__)
                self.tiles[axis] = sizes[axis]
                free //= sizes[axis]

    def _lanes(self) -> tuple[int, int]:
        """The lanes of a vector, and their axis: the numbers are adjacent, or one and the same.

        One lane, along axis -1, if no axis fits more.
        """
        most = vector_bits() // 64
        a, b, out, *_ = self.strides
        choices = [(1, False, False, -1)]
        for axis, size in enumerate(self.sizes):
            in_a_row = {a[axis], b[axis]}
            if axis not in self.whole and (in_a_row == {1} or (in_a_row == {0, 1} and axis < self.kept)):
                fits = [count for count in (most, most // 2) if count > 1 and size % count == 0]
                choices += [(count, axis < self.kept, out[axis] == 1, axis) for count in fits]
        lanes, *_, vector = max(choices)
        return lanes, vector

    def kernel(self) -> Kernel:
        more = (F64, F32)[: len(self.strides) - 3]
        self.build, function = started([self.operand, self.operand, *more, F32 if more else F64])
        a, b, *finish, result, begin, end = function.args
        self.memory = a, b, result, *finish
        self.entry = self.build.block
        self.type = ir.VectorType(F64, self.lanes) if self.lanes > 1 else F64
        steps = {axis: self.tiles.get(axis, self.lanes if axis == self.vector else 1) for axis in range(self.kept)}
        counts = {axis: self.sizes[axis] // step for axis, step in steps.items()}
        # Vectors outermost, tiles innermost: what a kernel meets stays in the cache.
        order = sorted(counts, key=lambda axis: (axis != self.vector, axis in self.tiles))
        with Loop(self.build, begin, end) as turn:
            index: Index = {}
            for axis in reversed(order):
                index[axis] = self.build.mul(self.build.urem(turn, I64(counts[axis])), I64(steps[axis]))
                turn = self.build.udiv(turn, I64(counts[axis]))
            self._tile(index)
        self.build.ret_void()
        return Kernel(function, math.prod(counts.values()), math.prod(self.sizes))

    def _tile(self, index: Index) -> None:
        """The sums of one tile."""
        places = list(itertools.product(*(range(size) for size in self.tiles.values())))
        self._begin(places)
        self._reduce(self.kept, index)
        for place, total in self.sums.items():
            self._store(self.build.load(total), index, place)

    def _begin(self, places: Sequence[Place]) -> None:
        """The sums of a tile, 0."""
        self.sums = {place: self._zeros(self.type) for place in places}

    def _zeros(self, type_: ir.Type) -> ir.Value:
        """Allocates a number on the stack, which becomes a register, and sets it to zero."""
        with self.build.goto_block(self.entry):
            place = self.build.alloca(type_)
        self.build.store(ir.Constant(type_, None), place)
        return place

    def _store(self, value: ir.Value, index: Index, place: Place) -> None:
        build, where = self.build, self._place(2, index, place)
        if self.lanes > 1 and self.vector >= self.kept:
            lanes = [build.extract_element(value, I32(lane)) for lane in range(self.lanes)]
            value = reduce(build.fadd, lanes)
        value = self._finished(value, index, place)
        if value.type in (F32, F64):
            build.store(value, where)
        elif self.strides[2][self.vector] == 1:
            build.store(value, build.bitcast(where, value.type.as_pointer()), align=4)
        else:
            for lane in range(self.lanes):
                there = build.gep(where, [I64(lane * self.strides[2][self.vector])])
                build.store(build.extract_element(value, I32(lane)), there)

    def _finished(self, total: ir.Value, index: Index, place: Place) -> ir.Value:
        """Finishes sums, see Sums.finish."""
        build = self.build
        given = [self._beside(operand, total.type, index, place) for operand in range(3, len(self.memory))]
        if not given:
            return total
        unit, *plus = given
        total = build.fmul(total, unit)
        for each in plus:
            total = build.fadd(total, build.fpext(each, total.type))
        return rounded(build, total)

    def _beside(self, operand: int, type_: ir.Type, index: Index, place: Place) -> ir.Value:
        """The numbers of an array that follows, for sums of this type."""
        build, where = self.build, self._place(operand, index, place)
        if type_ == F64:
            return build.load(where)
        step, single = self.strides[operand][self.vector], where.type.pointee
        if step == 0:
            return splat(build, build.load(where), self.lanes)
        row = ir.VectorType(single, self.lanes)
        if step == 1:
            return build.load(build.bitcast(where, row.as_pointer()), align=4)
        values = row(ir.Undefined)
        for lane in range(self.lanes):
            each = build.load(build.gep(where, [I64(lane * step)]))
            values = build.insert_element(values, each, I32(lane))
        return values

    def _reduce(self, axis: int, index: Index) -> None:
        """The loops from a reduced axis on."""
        if axis == len(self.sizes):
            self._add(index)
        elif axis in self.limits:
            self._turns(axis, *self._range(self.limits[axis], index), index)
        else:
            self._turns(axis, I64(0), I64(self.sizes[axis] // (self.lanes if axis == self.vector else 1)), index)

    def _turns(self, axis: int, begin: ir.Value, end: ir.Value, index: Index) -> None:
        """The loop over a reduced axis."""
        step = self.lanes if axis == self.vector else 1
        with Loop(self.build, begin, end) as turn:
            self._reduce(axis + 1, index | {axis: self.build.mul(turn, I64(step))})

    def _add(self, index: Index) -> None:
        """Adds one product to each sum."""
        build = self.build
        read: dict[Place, ir.Value] = {}
        for place, total in self.sums.items():
            product = build.fmul(*self._factors(read, index, place), flags=["contract"])  # exact, and so is the sum
            build.store(build.fadd(build.load(total), product, flags=["contract"]), total)

    def _factors(self, read: dict[Place, ir.Value], index: Index, place: Place) -> list[ir.Value]:
        """The factors of both operands at a place of a tile. Each is read once."""
        factors = []
        for operand in (0, 1):
            own = tuple(where for where, tile in zip(place, self.tiles, strict=True) if self.strides[operand][tile])
            if (operand, *own) not in read:
                read[operand, *own] = self._read(operand, index, place)
            factors.append(read[operand, *own])
        return factors

    def _range(self, limit: Limit, index: Index) -> tuple[ir.Value, ir.Value]:
        """The range of a reduced axis, between the edges."""
        build, step = self.build, limit.at_reduced
        row = build.add(I64(limit.start), build.mul(index[limit.kept], I64(limit.at_kept)))
        begin = build.sdiv(build.sub(I64(step - 1), row), I64(step))  # rounded up, where it is above 0
        end = build.sdiv(build.sub(I64(limit.rows + step - 1), row), I64(step))
        size = I64(self.sizes[limit.reduced])
        begin = build.select(build.icmp_signed(">", begin, I64(0)), begin, I64(0))
        return begin, build.select(build.icmp_signed("<", end, size), end, size)

    def _read(self, operand: int, index: Index, place: Place) -> ir.Value:
        where = self._place(operand, index, place)
        if self.lanes == 1:
            return self.build.load(where)
        if self.strides[operand][self.vector] == 0:
            return splat(self.build, self.build.load(where), self.lanes)
        return self.build.load(self.build.bitcast(where, self.type.as_pointer()), align=8)

    def _place(self, operand: int, index: Index, place: Place) -> ir.Value:
        build, strides = self.build, self.strides[operand]
        offset: ir.Value = I64(
            self.starts[operand] + sum(strides[axis] * at for axis, at in zip(self.tiles, place, strict=True))
        )
        for axis, value in index.items():
            if strides[axis]:
                offset = build.add(offset, build.mul(value, I64(strides[axis])))
        return build.gep(self.memory[operand], [offset])


def rounded(build: ir.IRBuilder, total: ir.Value) -> ir.Value:
    """Numbers, float64, rounded as r32 does, float32."""
    vector = isinstance(total.type, ir.VectorType)
    type_ = ir.VectorType(F32, total.type.count) if vector else F32

    def constant(value: float) -> ir.Value:
        return type_([value] * total.type.count) if vector else type_(value)

    result = build.fptrunc(total, type_)
    above, below = build.fcmp_ordered(">=", result, constant(-BELOW_TINY)), constant(BELOW_TINY)
    return build.select(build.and_(above, build.fcmp_ordered("<=", result, below)), constant(0.0), result)


def _divisor(size: int, most: int) -> int:
    return max(tile for tile in (1, 2, 3, 4, 5, 6) if tile <= most and size % tile == 0)
