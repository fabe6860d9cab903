"""Copies between layouts of matrices."""

from functools import cache

from llvmlite import ir

from repro.portable.kernels.machine import F32, F64, I64, Kernel, Loop, started


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
