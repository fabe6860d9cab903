"""Int16 sums of products, in pairs.

Sums of products of int16: pairs of them are multiplied and added by one instruction.

With |q| <= 2^13 a pair of products is at most 2^27 in magnitude, so int32 holds the sum of 15. Such sums are added up
in float64, exactly.
"""

import math
from collections.abc import Sequence
from functools import cache

from llvmlite import ir

from repro.portable.kernels.contraction import Contraction, Index, Place, Sums
from repro.portable.kernels.machine import I16, I32, I64, Kernel, Loop, features, splat, vector_bits

PAIRS = 15
MULTIPLY_ADD = {4: "llvm.x86.sse2.pmadd.wd", 8: "llvm.x86.avx2.pmadd.wd", 16: "llvm.x86.avx512.pmaddw.d.512"}
"""The instructions, by how many pairs they take."""


def possible() -> bool:
    """True if this processor is an x86 with AVX2."""
    return bool(features().get("avx2"))


def widest() -> int:
    """The number of pairs in a vector."""
    return 16 if vector_bits() == 512 and features().get("avx512bw") else 8


@cache
def in_pairs(sums: Sums) -> Kernel | None:
    """Kernel over arrays a and b, both int16, and the others of Sums; pairs lie along the last axis.

    None where sizes or strides are not fit for it.
    """
    result = _Pairs(sums)
    return result.kernel() if result.vector >= 0 else None


class _Pairs(Contraction):
    """Numbers that follow one another along the last axis are multiplied, and added up, by one instruction.

    In one operand they lie in a row. The other has a vector of each, or both have a vector of pairs.
    """

    operand = I16
    registers = 10

    def _lanes(self) -> tuple[int, int]:
        """The lanes, as in Contraction, but -1 where no axis fits. `wide`: the number of sums of pairs made at once."""
        a, b, out, *_ = self.strides
        last, size = len(self.sizes) - 1, self.sizes[-1]
        wide = [count for count in (16, 8, 4) if count <= widest()]
        choices = []
        if last not in self.whole and 1 in (a[last], b[last]):
            if a[last] == b[last]:
                choices += [(count, False, last) for count in wide if size % (2 * count) == 0]
            streams = a if b[last] == 1 else b
            choices += [
                (count, out[axis] == 1, axis)
                for axis in range(self.kept)
                for count in wide
                if axis not in self.whole
                and streams[axis] == 1
                and sum((a[axis], b[axis])) == 1
                and self.sizes[axis] % count == 0
            ]
        self.wide, _, vector = max(choices, default=(1, False, -1))
        return self.wide, vector

    def _begin(self, places: Sequence[Place]) -> None:
        super()._begin(places)
        sums = ir.VectorType(I32, self.wide)
        count = self.lanes // self.wide
        self.parts = {place: [self._zeros(sums) for _ in range(count)] for place in self.sums}
        module = self.build.module
        short = ir.VectorType(I16, 2 * self.wide)
        name = MULTIPLY_ADD[self.wide]
        self.multiply_add = module.globals.get(name) or ir.Function(module, ir.FunctionType(sums, [short] * 2), name)

    def _pairs(self, axis: int) -> int:
        """The largest number of pairs that are added up from a reduced axis on."""
        sizes = self.sizes[axis:]
        if sizes:
            sizes[-1] = -(-sizes[-1] // (2 * self.wide if self.vector == len(self.sizes) - 1 else 2))
        return math.prod(sizes)

    def _turns(self, axis: int, begin: ir.Value, end: ir.Value, index: Index) -> None:
        """Loop over an axis, as many turns at a time as int32 has room for."""
        build, last = self.build, axis == len(self.sizes) - 1
        step = 1 if not last else 2 * self.wide if axis == self.vector else 2
        odd = last and self.sizes[axis] % step == 1
        if last:
            end = I64(self.sizes[axis] // step)
        room, whole = PAIRS // self._pairs(axis + 1), self._pairs(axis) <= PAIRS
        if whole or not room:
            self._some(axis, begin, end, step, index)
        else:
            parts = build.sdiv(build.add(build.sub(end, begin), I64(room - 1)), I64(room))
            with Loop(build, I64(0), parts) as part:
                first = build.add(begin, build.mul(part, I64(room)))
                stop = build.add(first, I64(room))
                stop = build.select(build.icmp_signed("<", stop, end), stop, end)
                self._some(axis, first, stop, step, index)
                self._flush()
        if odd:
            self._add(index | {axis: I64(self.sizes[axis] - 1)}, odd=True)
        if axis == self.kept if whole else odd:
            self._flush()

    def _some(self, axis: int, begin: ir.Value, end: ir.Value, step: int, index: Index) -> None:
        with Loop(self.build, begin, end) as turn:
            self._reduce(axis + 1, index | {axis: self.build.mul(turn, I64(step))})

    def _flush(self) -> None:
        """Adds the sums of pairs to those in float64, and begins again."""
        build = self.build
        for place, parts in self.parts.items():
            values = [build.load(part) for part in parts]
            if len(values) == 2:
                both = ir.Constant(ir.VectorType(I32, self.lanes), [I32(lane) for lane in range(self.lanes)])
                values = [build.shuffle_vector(*values, both)]
            value = build.sitofp(values[0], self.type)
            build.store(build.fadd(build.load(self.sums[place]), value), self.sums[place])
            for part in parts:
                build.store(ir.Constant(part.type.pointee, None), part)

    def _add(self, index: Index, odd: bool = False) -> None:
        self.odd = odd
        read: dict[Place, list[ir.Value]] = {}
        for place, parts in self.parts.items():
            for part, *factors in zip(parts, *self._factors(read, index, place), strict=True):
                added = self.build.call(self.multiply_add, factors)
                self.build.store(self.build.add(self.build.load(part), added), part)

    def _read(self, operand: int, index: Index, place: Place) -> list[ir.Value]:
        """Pairs, for each part; the last of an odd number has 0 beside it."""
        build, where = self.build, self._place(operand, index, place)
        short, count = ir.VectorType(I16, 2 * self.wide), self.lanes // self.wide
        last = len(self.sizes) - 1
        if self.vector == last:
            return [build.load(build.bitcast(where, short.as_pointer()), align=2)]
        if self.strides[operand][self.vector] == 0:
            if self.odd:
                pair = build.zext(build.load(where), I32)
            else:
                pair = build.load(build.bitcast(where, I32.as_pointer()), align=2)
            return [build.bitcast(splat(build, pair, self.wide), short)] * count
        row = ir.VectorType(I16, self.lanes)
        lower = build.load(build.bitcast(where, row.as_pointer()), align=2)
        upper = ir.Constant(row, None)
        if not self.odd:
            following = build.gep(where, [I64(self.strides[operand][last])])
            upper = build.load(build.bitcast(following, row.as_pointer()), align=2)
        lanes = [
            lane for pair in zip(range(self.lanes), range(self.lanes, 2 * self.lanes), strict=True) for lane in pair
        ]
        size = 2 * self.wide
        masks = [lanes[part * size : (part + 1) * size] for part in range(count)]
        order = ir.VectorType(I32, size)
        return [build.shuffle_vector(lower, upper, ir.Constant(order, [I32(lane) for lane in mask])) for mask in masks]
