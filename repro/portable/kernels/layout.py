"""Copies between layouts of matrices."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from llvmlite import ir

from repro.portable.kernels.machine import F32, F64, I16, I32, I64, Kernel, Loop, started


@cache
def cut(batch: int, rows: int, columns: int, high: int, wide: int) -> Kernel:
    """Kernel over matrices, float32 [batch, high, wide], and the first rows and columns of each."""
    build, function = started([F32, F32])
    x, result, begin, end = function.args
    with Loop(build, begin, end) as turn:
        line = build.add(build.mul(build.udiv(turn, I64(rows)), I64(high)), build.urem(turn, I64(rows)))
        source = build.gep(x, [build.mul(line, I64(wide))])
        target = build.gep(result, [build.mul(turn, I64(columns))])
        with Loop(build, I64(0), I64(columns)) as at:
            build.store(build.load(build.gep(source, [at])), build.gep(target, [at]))
    build.ret_void()
    return Kernel(function, batch * rows, batch * rows * columns)


@cache
def widened(batch: int, size: int, wide: int, bits: int) -> Kernel:
    """Kernel over float32 [batch, size] times 2^bits, float64 [batch, wide], with zeros from `size` on."""
    build, function = started([F32, F64])
    x, result, begin, end = function.args
    with Loop(build, begin, end) as turn:
        source = build.gep(x, [build.mul(turn, I64(size))])
        target = build.gep(result, [build.mul(turn, I64(wide))])
        with Loop(build, I64(0), I64(size)) as at:
            results = build.fmul(build.fpext(build.load(build.gep(source, [at])), F64), ir.Constant(F64, 2.0**bits))
            build.store(results, build.gep(target, [at]))
        with Loop(build, I64(size), I64(wide)) as at:
            build.store(ir.Constant(F64, 0.0), build.gep(target, [at]))
    build.ret_void()
    return Kernel(function, batch, batch * wide)


@dataclass(frozen=True)
class Lines:
    """Matrices of int16 in memory, [..., lines, terms]: a product adds up along the terms."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """Elements from one number to the next, for each axis."""

    @property
    def matrices(self) -> int:
        return math.prod(self.shape[:-2])

    @property
    def pairs(self) -> int:
        """Pairs of terms; the last of an odd number has 0 beside it."""
        return -(-self.shape[-1] // 2)


@cache
def panels(given: Lines, tile: int) -> Kernel:
    """Kernel over Lines and their panels, [matrices, lines / tile, pairs, tile, 2], with zeros in a last one's other lines."""
    build, function = started([I16, I16])
    x, result, begin, end = function.args
    lines, terms = given.shape[-2:]
    apart, step = given.strides[-2:]
    across, pairs = -(-lines // tile), given.pairs
    row, both = ir.VectorType(I16, tile), ir.VectorType(I16, 2 * tile)
    order = ir.VectorType(I32, 2 * tile)([half * tile + at for at in range(tile) for half in range(2)])
    with Loop(build, begin, end) as turn:
        matrix, panel = build.udiv(turn, I64(across)), build.urem(turn, I64(across))
        first = build.mul(panel, I64(tile))
        start = build.gep(x, [_offset(build, matrix, given.shape[:-2], given.strides[:-2])])
        start = build.gep(start, [build.mul(first, I64(apart))])
        target = build.gep(result, [build.mul(turn, I64(2 * pairs * tile))])
        left = build.sub(I64(lines), first)
        count = build.select(build.icmp_signed("<", left, I64(tile)), left, I64(tile))

        def pair_of(line: ir.Value, pair: ir.Value, halves: int) -> None:
            """Copies a pair of a line, or half of it."""
            source = build.gep(start, [build.add(build.mul(line, I64(apart)), build.mul(pair, I64(2 * step)))])
            there = build.gep(target, [build.mul(build.add(build.mul(pair, I64(tile)), line), I64(2))])
            for half in range(halves):
                build.store(build.load(build.gep(source, [I64(half * step)])), build.gep(there, [I64(half)]))
            if halves == 1:
                build.store(I16(0), build.gep(there, [I64(1)]))

        def some(begin: ir.Value, end: ir.Value, last: ir.Value, halves: int) -> None:
            """Pairs one by one, and zeros beside the last of the lines."""
            with Loop(build, begin, end) as pair:
                with Loop(build, I64(0), last) as line:
                    pair_of(line, pair, halves)
                with Loop(build, last, I64(tile)) as line:
                    there = build.gep(target, [build.mul(build.add(build.mul(pair, I64(tile)), line), I64(2))])
                    for half in range(2):
                        build.store(I16(0), build.gep(there, [I64(half)]))

        full = terms // 2
        if apart == 1 and tile > 1:
            with build.if_else(build.icmp_signed("==", count, I64(tile))) as (whole, edge):
                with whole, Loop(build, I64(0), I64(full)) as pair:
                    upper = build.gep(start, [build.mul(pair, I64(2 * step))])
                    numbers = [
                        build.load(build.bitcast(build.gep(upper, [I64(half * step)]), row.as_pointer()), align=2)
                        for half in range(2)
                    ]
                    there = build.bitcast(build.gep(target, [build.mul(pair, I64(2 * tile))]), both.as_pointer())
                    build.store(build.shuffle_vector(*numbers, order), there, align=2)
                with edge:
                    some(I64(0), I64(full), count, 2)
        else:
            some(I64(0), I64(full), count, 2)
        if terms % 2:
            some(I64(full), I64(pairs), count, 1)
    build.ret_void()
    return Kernel(function, given.matrices * across, given.matrices * across * tile * 2 * pairs)


def _offset(build: ir.IRBuilder, number: ir.Value, shape: Sequence[int], strides: Sequence[int]) -> ir.Value:
    """The place of one of the arrays along the first axes."""
    offset: ir.Value = I64(0)
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        offset = build.add(offset, build.mul(build.urem(number, I64(size)), I64(stride)))
        number = build.udiv(number, I64(size))
    return offset
