"""Products of weights and rows, prepared for products by rows and columns.

See repro.portable.definitions.products.of_one_form, which gives the same.
"""

from functools import cache

from llvmlite import ir

from repro.portable.definitions.products import NEAR
from repro.portable.kernels.lanes import MAGNITUDE, grid, rint
from repro.portable.kernels.machine import F32, F64, I32, I64, Kernel, Loop, started
from repro.portable.numbers.constants import BITS, POWER_BITS

TRUE, FALSE = (ir.IntType(1)(bit) for bit in (1, 0))


@cache
def of_one_form(batch: int, rows: int, terms: int, columns: int) -> Kernel:
    """Kernel over a [batch, M, K] and b [batch, K, N]; the factors [batch, M, K + 1] and [batch, K + 1, N], a unit for
    each matrix, [batch], and memory for the scales of b's rows, [batch, K]. All are float32.
    """
    build, function = started([F32] * 6)
    *arrays, begin, end = function.args
    sizes = rows * terms, terms * columns, rows * (terms + 1), (terms + 1) * columns, 1, terms
    with Loop(build, begin, end) as matrix:
        a, b, x, y, unit, scales = (
            build.gep(array, [build.mul(matrix, I64(size))]) for array, size in zip(arrays, sizes, strict=True)
        )
        found = _are_weights(build, a, rows, terms)
        build.store(build.select(found, F32(2.0**-BITS), F32(1.0)), unit)
        with Loop(build, I64(0), I64(terms)) as term:
            start = build.mul(term, I64(columns))
            line, target = (build.gep(each, [start]) for each in (b, y))
            up, scale = grid(build, _most(build, line, columns), BITS)
            build.store(build.select(found, scale, F32(1.0)), build.gep(scales, [term]))
            up = build.select(found, up, F32(1.0))
            with Loop(build, I64(0), I64(columns)) as at:
                build.store(build.fmul(build.load(build.gep(line, [at])), up), build.gep(target, [at]))
        last, edge = build.gep(y, [I64(terms * columns)]), build.select(found, F32(0.75 * 2.0**BITS), F32(0.0))
        with Loop(build, I64(0), I64(columns)) as at:
            build.store(edge, build.gep(last, [at]))
        with Loop(build, I64(0), I64(rows)) as row:
            line, target = build.gep(a, [build.mul(row, I64(terms))]), build.gep(x, [build.mul(row, I64(terms + 1))])
            with Loop(build, I64(0), I64(terms)) as at:
                value, scale = (build.load(build.gep(each, [at])) for each in (line, scales))
                build.store(build.fmul(value, scale), build.gep(target, [at]))
            build.store(F32(0.0), build.gep(target, [I64(terms)]))
    build.ret_void()
    return Kernel(function, batch, batch * terms * (rows + columns), results=4)


def _are_weights(build: ir.IRBuilder, a: ir.Value, rows: int, terms: int) -> ir.Value:
    """repro.portable.definitions.products.are_weights of a matrix: some rows have the sum 1, all others 0 or a NaN."""
    with build.goto_entry_block():  # elsewhere each turn of the loop would take more of the stack
        some, every, total = (build.alloca(kind) for kind in (TRUE.type, TRUE.type, F64))
    build.store(FALSE, some)
    build.store(TRUE, every)
    with Loop(build, I64(0), I64(rows)) as row:
        line = build.gep(a, [build.mul(row, I64(terms))])
        build.store(F64(0.0), total)
        with Loop(build, I64(0), I64(terms)) as at:
            value = build.load(build.gep(line, [at]))
            inside = build.and_(build.fcmp_ordered(">=", value, F32(0.0)), build.fcmp_ordered("<=", value, F32(1.0)))
            number = build.fcmp_ordered("ord", value, value)
            part = build.select(inside, value, build.select(number, F32(4.0), F32(float("nan"))))
            scaled = rint(build, build.fmul(build.fpext(part, F64), F64(2.0**POWER_BITS)))
            build.store(build.fadd(build.load(total), scaled, ("reassoc",)), total)
        result = build.load(total)
        low, high = (F64(edge * 2.0**POWER_BITS) for edge in (1 - NEAR, 1 + NEAR))
        one = build.and_(build.fcmp_ordered(">=", result, low), build.fcmp_ordered("<=", result, high))
        none = build.fcmp_unordered("==", result, F64(0.0))
        build.store(build.or_(build.load(some), one), some)
        build.store(build.and_(build.load(every), build.or_(one, none)), every)
    return build.and_(build.load(some), build.load(every))


def _most(build: ir.IRBuilder, line: ir.Value, size: int) -> ir.Value:
    """The largest magnitude of a line, as bits of float32."""
    with build.goto_entry_block():
        most = build.alloca(I32)
    build.store(I32(0), most)
    with Loop(build, I64(0), I64(size)) as at:
        bits = build.and_(build.load(build.gep(build.bitcast(line, I32.as_pointer()), [at])), I32(MAGNITUDE))
        old = build.load(most)
        build.store(build.select(build.icmp_signed(">", bits, old), bits, old), most)
    return build.load(most)
