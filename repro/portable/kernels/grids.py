"""Numbers on grids, and exact sums.

Each is what repro.portable.definitions.grids gives, in a few passes over memory. A group of numbers has a grid of its own,
p = 2^e with the least e >= -100 above all its magnitudes; NaN for e = 128.
"""

from collections.abc import Callable
from functools import cache

from llvmlite import ir

from repro.portable.kernels.lanes import (
    LANES,
    VECTOR,
    Lanes,
    grid,
    integers,
    quantized,
    raise_most,
    rint,
    rounded,
    steps,
    vector_at,
)
from repro.portable.kernels.machine import F32, F64, I16, I32, I64, Kernel, Loop, splat, started
from repro.portable.numbers.constants import BITS, SUM_BITS


@cache
def rows(groups: int, size: int, width: int) -> Kernel:
    """Kernel over x, float32 [groups, size]; q, int16 [groups, width], zeros from `size` on; p, float32 [groups]."""
    build, function = started([F32, I16, F32])
    x, q, p, begin, end = function.args
    lanes, vector = Lanes(build, function, 1), build.alloca(VECTOR)
    with Loop(build, begin, end) as group:
        line = build.gep(x, [build.mul(group, I64(size))])
        target = build.gep(q, [build.mul(group, I64(width))])
        whole = size - size % LANES
        build.store(VECTOR(None), vector)
        with steps(build, whole, LANES) as at:
            raise_most(build, vector, vector_at(build, line, at))
        lanes.store(build.load(vector))
        with Loop(build, I64(whole), I64(size)) as at:
            lanes.raise_most(I64(0), build.gep(line, [at]))
        up, scale = grid(build, lanes.largest(), BITS)
        build.store(scale, build.gep(p, [group]))
        ups = splat(build, up, LANES)
        with steps(build, whole, LANES) as at:
            result = build.trunc(integers(build, vector_at(build, line, at), ups), ir.VectorType(I16, LANES))
            build.store(result, build.bitcast(build.gep(target, [at]), result.type.as_pointer()), align=2)
        with Loop(build, I64(whole), I64(size)) as at:
            build.store(quantized(build, build.load(build.gep(line, [at])), up), build.gep(target, [at]))
        with Loop(build, I64(size), I64(width)) as at:
            build.store(I16(0), build.gep(target, [at]))
    build.ret_void()
    return Kernel(function, groups, groups * width, results=2)


@cache
def panels(batch: int, terms: int, columns: int, tile: int, part: int = 0) -> Kernel:
    """Kernel over matrices x, float32 [batch, K, N], with a grid for each column; their panels; p, float32 [batch, N'].

    The panels are those of products.panels(), with zeros up to an even K, and up to N', a multiple of `tile`. They are
    of `tile` columns, or of `part` where it is given, which divides that.
    """
    part = part or tile
    pairs, across = -(-terms // 2), -(-columns // tile)
    build, function = started([F32, I16, F32])
    x, q, p, begin, end = function.args
    lanes = Lanes(build, function, tile // LANES)
    ups, vectors = lanes.array(F32), [build.alloca(VECTOR) for _ in range(tile // LANES)]
    with Loop(build, begin, end) as turn:
        matrix, panel = build.udiv(turn, I64(across)), build.urem(turn, I64(across))
        first = build.mul(panel, I64(tile))
        left = build.sub(I64(columns), first)
        count = build.select(build.icmp_signed("<", left, I64(tile)), left, I64(tile))
        start = build.gep(x, [build.add(build.mul(matrix, I64(terms * columns)), first)])
        whole, odd = build.icmp_signed("==", count, I64(tile)), terms % 2
        with build.if_else(whole) as (all_lanes, some):
            with all_lanes:
                for vector in vectors:
                    build.store(VECTOR(None), vector)
                with Loop(build, I64(0), I64(terms)) as term:
                    line = build.mul(term, I64(columns))
                    for number, vector in enumerate(vectors):
                        raise_most(build, vector, vector_at(build, start, build.add(line, I64(number * LANES))))
                for number, vector in enumerate(vectors):
                    lanes.store(build.load(vector), number)
            with some:
                lanes.zero(lanes.most)
                with Loop(build, I64(0), I64(terms)) as term:
                    line = build.gep(start, [build.mul(term, I64(columns))])
                    with Loop(build, I64(0), count) as lane:
                        lanes.raise_most(lane, build.gep(line, [lane]))
        scales = build.gep(p, [build.mul(turn, I64(tile))])
        with Loop(build, I64(0), I64(tile)) as lane:
            up, scale = grid(build, build.load(build.gep(lanes.most, [lane])), BITS)
            build.store(up, build.gep(ups, [lane]))
            build.store(scale, build.gep(scales, [lane]))
        target = build.gep(q, [build.mul(turn, I64(2 * pairs * tile))])
        with Loop(build, I64(0), I64(pairs)) as pair:
            there = build.gep(target, [build.mul(pair, I64(2 * part))])

            def place(lane: ir.Value) -> ir.Value:
                """The place of a pair, from that of the first column on."""
                if part == tile:
                    return lane
                return build.add(build.mul(build.udiv(lane, I64(part)), I64(pairs * part)), build.urem(lane, I64(part)))

            upper = build.gep(start, [build.mul(pair, I64(2 * columns))])
            last = build.icmp_signed("==", pair, I64(pairs - 1)) if odd else ir.Constant(ir.IntType(1), 0)
            plain = build.and_(whole, build.not_(last))
            with build.if_else(plain) as (inside, edge):
                with inside:
                    for number in range(tile // LANES):
                        _pairs(build, upper, columns, number, ups, there, part, pairs)
                with edge:
                    with Loop(build, I64(0), I64(tile)) as lane:
                        both = build.gep(build.bitcast(there, I32.as_pointer()), [place(lane)])
                        build.store(I32(0), both, align=2)
                    with Loop(build, I64(0), count) as lane:
                        value = build.load(build.gep(upper, [lane]))
                        result = quantized(build, value, build.load(build.gep(ups, [lane])))
                        build.store(result, build.gep(there, [build.shl(place(lane), I64(1))]))
                        with build.if_then(build.not_(last)):
                            value = build.load(build.gep(upper, [build.add(lane, I64(columns))]))
                            result = quantized(build, value, build.load(build.gep(ups, [lane])))
                            build.store(result, build.gep(there, [build.add(build.shl(place(lane), I64(1)), I64(1))]))
    build.ret_void()
    return Kernel(function, batch * across, batch * terms * columns, results=2)


def _pairs(
    build: ir.IRBuilder,
    upper: ir.Value,
    columns: int,
    number: int,
    ups: ir.Value,
    there: ir.Value,
    part: int,
    pairs: int,
) -> None:
    """Stores two numbers of each column of a vector, beside one another, in 32 bits."""
    first = I64(number * LANES)
    scales = vector_at(build, ups, first)
    high, low = (
        integers(build, vector_at(build, upper, place), scales) for place in (first, build.add(first, I64(columns)))
    )
    both = build.or_(build.and_(high, VECTOR([0xFFFF] * LANES)), build.shl(low, VECTOR([16] * LANES)))
    target, size = build.bitcast(there, I32.as_pointer()), min(part, LANES)
    for lane in range(0, LANES, size):
        order = ir.VectorType(I32, size)([I32(each) for each in range(lane, lane + size)])
        some = build.shuffle_vector(both, both, order)
        column = number * LANES + lane
        where = build.gep(target, [I64(column // part * pairs * part + column % part)])
        build.store(some, build.bitcast(where, some.type.as_pointer()), align=2)


@cache
def sums(before: int, size: int, after: int) -> Kernel:
    """Kernel over x, float32 [before, size, after], and its exact sums along the middle, float32 [before, after]."""
    build, function = started([F32, F32])
    x, result, begin, end = function.args
    lanes = Lanes(build, function, 1)
    totals, ups, units = lanes.array(F64), lanes.array(F32), lanes.array(F64)
    along = after == 1
    across = 1 if along else -(-after // LANES)
    with Loop(build, begin, end) as turn:
        block, first = build.udiv(turn, I64(across)), build.mul(build.urem(turn, I64(across)), I64(LANES))
        start = build.gep(x, [build.add(build.mul(block, I64(size * after)), first)])
        left = build.sub(I64(after), first)
        count = build.select(build.icmp_signed("<", left, I64(LANES)), left, I64(LANES))
        lanes.zero(lanes.most)
        lanes.zero(totals)
        whole = size - size % LANES

        def over(visit: Callable[[ir.Value, ir.Value], None]) -> None:
            """Visits all numbers, each with its lane."""
            if along:
                with steps(build, whole, LANES) as at, Loop(build, I64(0), I64(LANES)) as lane:
                    visit(lane, build.gep(start, [build.add(at, lane)]))
                with Loop(build, I64(whole), I64(size)) as at:
                    visit(I64(0), build.gep(start, [at]))
                return
            full = build.icmp_signed("==", count, I64(LANES))
            with build.if_else(full) as (all_lanes, some):
                for branch, lanes_of in ((all_lanes, I64(LANES)), (some, count)):
                    with branch, Loop(build, I64(0), I64(size)) as term:
                        line = build.gep(start, [build.mul(term, I64(after))])
                        with Loop(build, I64(0), lanes_of) as lane:
                            visit(lane, build.gep(line, [lane]))

        over(lanes.raise_most)
        if along:
            lanes.fill(lanes.most, lanes.largest())
        with Loop(build, I64(0), I64(LANES)) as lane:
            up, scale = grid(build, build.load(build.gep(lanes.most, [lane])), SUM_BITS)
            build.store(up, build.gep(ups, [lane]))
            unit = build.fmul(build.fpext(scale, F64), F64(2.0**-SUM_BITS))
            build.store(unit, build.gep(units, [lane]))

        def add(lane: ir.Value, address: ir.Value) -> None:
            scaled = build.fmul(build.load(address), build.load(build.gep(ups, [lane])))
            here = build.gep(totals, [lane])
            build.store(build.fadd(build.load(here), build.fpext(rint(build, scaled), F64)), here)

        over(add)
        if along:
            total = F64(0.0)
            for lane in range(LANES):
                total = build.fadd(total, build.load(build.gep(totals, [I64(lane)])))
            build.store(rounded(build, build.fmul(total, build.load(units))), build.gep(result, [block]))
        else:
            line = build.gep(result, [build.add(build.mul(block, I64(after)), first)])
            with Loop(build, I64(0), count) as lane:
                total = build.load(build.gep(totals, [lane]))
                results = build.fmul(total, build.load(build.gep(units, [lane])))
                build.store(rounded(build, results), build.gep(line, [lane]))
    build.ret_void()
    return Kernel(function, before * across, before * size * after)
