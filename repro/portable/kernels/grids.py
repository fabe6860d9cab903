"""Numbers on grids, and exact sums.

Each is what repro.portable.operations.grids gives, in a few passes over memory. A group of numbers has a grid of its own,
p = 2^e with the least e >= -100 above all its magnitudes; NaN for e = 128.
"""

from collections.abc import Callable
from functools import cache

from llvmlite import ir

from repro.portable.constants import BELOW_TINY, BITS, SMALLEST, SUM_BITS
from repro.portable.kernels.machine import F32, F64, I16, I32, I64, Loop, Loops, started

MAGNITUDE = 0x7FFFFFFF
LANES = 16
"""Columns, or numbers of a row, that are taken together."""
NAN = I32(0x7FC00000)


@cache
def rows(groups: int, size: int, width: int) -> Loops:
    """Loops over x, float32 [groups, size]; q, int16 [groups, width], with zeros from `size` on; p, float32 [groups]."""
    build, function = started([F32, I16, F32])
    x, q, p, begin, end = function.args
    lanes = _Lanes(build, function, 1)
    with Loop(build, begin, end) as group:
        line = build.gep(x, [build.mul(group, I64(size))])
        target = build.gep(q, [build.mul(group, I64(width))])
        lanes.zero(lanes.most)
        whole = size - size % LANES
        with _steps(build, whole, LANES) as at, Loop(build, I64(0), I64(LANES)) as lane:
            lanes.raise_most(lane, build.gep(line, [build.add(at, lane)]))
        with Loop(build, I64(whole), I64(size)) as at:
            lanes.raise_most(I64(0), build.gep(line, [at]))
        up, scale = _grid(build, lanes.largest(), BITS)
        build.store(scale, build.gep(p, [group]))
        with Loop(build, I64(0), I64(size)) as at:
            build.store(_quantized(build, build.load(build.gep(line, [at])), up), build.gep(target, [at]))
        with Loop(build, I64(size), I64(width)) as at:
            build.store(I16(0), build.gep(target, [at]))
    build.ret_void()
    return Loops(function, groups, groups * width, results=2)


@cache
def panels(batch: int, terms: int, columns: int, tile: int) -> Loops:
    """Loops over matrices x, float32 [batch, K, N], with a grid for each column; their panels; p, float32 [batch, N'].

    The panels are those of products.panels(), with zeros up to an even K, and up to N', a multiple of `tile`.
    """
    pairs, across = -(-terms // 2), -(-columns // tile)
    build, function = started([F32, I16, F32])
    x, q, p, begin, end = function.args
    lanes = _Lanes(build, function, tile // LANES)
    ups = lanes.array(F32)
    with Loop(build, begin, end) as turn:
        matrix, panel = build.udiv(turn, I64(across)), build.urem(turn, I64(across))
        first = build.mul(panel, I64(tile))
        left = build.sub(I64(columns), first)
        count = build.select(build.icmp_signed("<", left, I64(tile)), left, I64(tile))
        start = build.gep(x, [build.add(build.mul(matrix, I64(terms * columns)), first)])
        lanes.zero(lanes.most)
        with Loop(build, I64(0), I64(terms)) as term:
            line = build.gep(start, [build.mul(term, I64(columns))])
            with Loop(build, I64(0), count) as lane:
                lanes.raise_most(lane, build.gep(line, [lane]))
        scales = build.gep(p, [build.mul(turn, I64(tile))])
        with Loop(build, I64(0), I64(tile)) as lane:
            up, scale = _grid(build, build.load(build.gep(lanes.most, [lane])), BITS)
            build.store(up, build.gep(ups, [lane]))
            build.store(scale, build.gep(scales, [lane]))
        target = build.gep(q, [build.mul(turn, I64(2 * pairs * tile))])
        whole, odd = build.icmp_signed("==", count, I64(tile)), terms % 2
        with Loop(build, I64(0), I64(pairs)) as pair:
            there = build.gep(target, [build.mul(pair, I64(2 * tile))])
            upper = build.gep(start, [build.mul(pair, I64(2 * columns))])
            last = build.icmp_signed("==", pair, I64(pairs - 1)) if odd else ir.Constant(ir.IntType(1), 0)
            plain = build.and_(whole, build.not_(last))
            with build.if_else(plain) as (inside, edge):
                with inside, Loop(build, I64(0), I64(tile)) as lane:
                    _pair(build, upper, columns, lane, ups, there)
                with edge:
                    with Loop(build, I64(0), I64(2 * tile)) as at:
                        build.store(I16(0), build.gep(there, [at]))
                    with Loop(build, I64(0), count) as lane:
                        value = build.load(build.gep(upper, [lane]))
                        found = _quantized(build, value, build.load(build.gep(ups, [lane])))
                        build.store(found, build.gep(there, [build.shl(lane, I64(1))]))
                        with build.if_then(build.not_(last)):
                            value = build.load(build.gep(upper, [build.add(lane, I64(columns))]))
                            found = _quantized(build, value, build.load(build.gep(ups, [lane])))
                            build.store(found, build.gep(there, [build.add(build.shl(lane, I64(1)), I64(1))]))
    build.ret_void()
    return Loops(function, batch * across, batch * terms * columns, results=2)


def _pair(build: ir.IRBuilder, upper: ir.Value, columns: int, lane: ir.Value, ups: ir.Value, there: ir.Value) -> None:
    """Two numbers of a column, beside one another, by one store of 32 bits."""
    up = build.load(build.gep(ups, [lane]))
    values = (build.load(build.gep(upper, [place])) for place in (lane, build.add(lane, I64(columns))))
    first, second = (_quantized(build, value, up) for value in values)
    both = build.or_(build.zext(first, I32), build.shl(build.zext(second, I32), I32(16)))
    build.store(both, build.gep(build.bitcast(there, I32.as_pointer()), [lane]), align=2)


@cache
def sums(before: int, size: int, after: int) -> Loops:
    """Loops over x, float32 [before, size, after], and its exact sums along the middle, float32 [before, after]."""
    build, function = started([F32, F32])
    x, result, begin, end = function.args
    lanes = _Lanes(build, function, 1)
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
            """All numbers, each with its lane."""
            if along:
                with _steps(build, whole, LANES) as at, Loop(build, I64(0), I64(LANES)) as lane:
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
            up, scale = _grid(build, build.load(build.gep(lanes.most, [lane])), SUM_BITS)
            build.store(up, build.gep(ups, [lane]))
            unit = build.fmul(build.fpext(scale, F64), F64(2.0**-SUM_BITS))
            build.store(unit, build.gep(units, [lane]))

        def add(lane: ir.Value, address: ir.Value) -> None:
            scaled = build.fmul(build.load(address), build.load(build.gep(ups, [lane])))
            here = build.gep(totals, [lane])
            build.store(build.fadd(build.load(here), build.fpext(_rint(build, scaled), F64)), here)

        over(add)
        if along:
            total = F64(0.0)
            for lane in range(LANES):
                total = build.fadd(total, build.load(build.gep(totals, [I64(lane)])))
            build.store(_rounded(build, build.fmul(total, build.load(units))), build.gep(result, [block]))
        else:
            line = build.gep(result, [build.add(build.mul(block, I64(after)), first)])
            with Loop(build, I64(0), count) as lane:
                total = build.load(build.gep(totals, [lane]))
                found = build.fmul(total, build.load(build.gep(units, [lane])))
                build.store(_rounded(build, found), build.gep(line, [lane]))
    build.ret_void()
    return Loops(function, before * across, before * size * after)


# --- parts ------------------------------------------------------------------------------------------------------------


class _Lanes:
    """Numbers that a function has for each lane, on its stack."""

    def __init__(self, build: ir.IRBuilder, function: ir.Function, vectors: int) -> None:
        self.build, self.entry, self.count = build, function.entry_basic_block, vectors * LANES
        self.most = self.array(I32)

    def array(self, type_: ir.Type) -> ir.Value:
        return self.build.alloca(type_, self.count)

    def fill(self, array: ir.Value, value: ir.Value) -> None:
        with Loop(self.build, I64(0), I64(self.count)) as lane:
            self.build.store(value, self.build.gep(array, [lane]))

    def zero(self, array: ir.Value) -> None:
        self.fill(array, ir.Constant(array.type.pointee, 0))

    def raise_most(self, lane: ir.Value, address: ir.Value) -> None:
        """Raises the largest magnitude of a lane to that of a number; magnitudes are in order as integers."""
        build = self.build
        bits = build.and_(build.bitcast(build.load(address), I32), I32(MAGNITUDE))
        here = build.gep(self.most, [lane])
        most = build.load(here)
        build.store(build.select(build.icmp_signed(">", bits, most), bits, most), here)

    def largest(self) -> ir.Value:
        """Of all lanes."""
        build = self.build
        found = build.load(self.most)
        for lane in range(1, self.count):
            each = build.load(build.gep(self.most, [I64(lane)]))
            found = build.select(build.icmp_signed(">", each, found), each, found)
        return found


class _steps:  # noqa: N801
    """A loop to before `end`, in steps, as a context."""

    def __init__(self, build: ir.IRBuilder, end: int, step: int) -> None:
        self.build, self.step = build, step
        self.loop = Loop(build, I64(0), I64(end // step))

    def __enter__(self) -> ir.Value:
        return self.build.mul(self.loop.__enter__(), I64(self.step))

    def __exit__(self, *given: object) -> None:
        self.loop.__exit__(*given)


def _grid(build: ir.IRBuilder, most: ir.Value, bits: int) -> tuple[ir.Value, ir.Value]:
    """2^(bits - e) and p for the largest magnitude of a group, as bits of float32."""
    e = build.sub(build.ashr(most, I32(23)), I32(126))
    e = build.select(build.icmp_signed("<", e, I32(SMALLEST)), I32(SMALLEST), e)
    e = build.select(build.icmp_signed(">", e, I32(128)), I32(128), e)
    beyond = build.icmp_signed(">", e, I32(127))
    up = build.bitcast(build.shl(build.sub(I32(bits + 127), e), I32(23)), F32)
    up = build.select(beyond, F32(0.0), up)
    scale = build.select(beyond, NAN, build.shl(build.add(e, I32(127)), I32(23)))
    return up, build.bitcast(scale, F32)


def _rint(build: ir.IRBuilder, x: ir.Value) -> ir.Value:
    return build.call(build.module.declare_intrinsic("llvm.rint", [F32]), [x])


def _quantized(build: ir.IRBuilder, x: ir.Value, up: ir.Value) -> ir.Value:
    """int16: below 2^13 but for infinities and NaN, whose products are NaN as p is."""
    found = build.fptosi(_rint(build, build.fmul(x, up)), I32)
    return build.trunc(found, I16)


def _rounded(build: ir.IRBuilder, total: ir.Value) -> ir.Value:
    """As r32 rounds."""
    found = build.fptrunc(total, F32)
    above, below = F32(-BELOW_TINY), F32(BELOW_TINY)
    small = build.and_(build.fcmp_ordered(">=", found, above), build.fcmp_ordered("<=", found, below))
    return build.select(small, F32(0.0), found)
