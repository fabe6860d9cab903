"""Exact products of matrices of int16, on a CPU: pairs of terms are multiplied and added by one instruction.

With |q| <= 2^13 a pair of products is at most 2^27 in magnitude, so int32 holds the sum of 15. Such sums are added up
in float64, exactly.
"""

from functools import cache

import llvmlite.binding as llvm
import torch
from llvmlite import ir
from torch import Tensor

from repro.portable.pytorch.fusion.machine import F64, I16, I32, I64, Compiled, Loop, compiled, started, vector_bits

PAIRS = 15
ROWS, VECTORS = 4, 2
"""Of a tile of the result: its sums are in registers."""
BLOCK = 64
"""Rows of the first matrix that stay in the cache."""


@cache
def possible() -> bool:
    """Whether this processor has the instruction, of x86 with AVX2."""
    return bool(llvm.get_host_cpu_features().get("avx2"))


def fit(rows: int, terms: int, columns: int) -> bool:
    """Whether the product of [rows, terms] and [terms, columns], and both its gradients, can be made so."""
    even = not (rows % 2 or terms % 2 or columns % 2)
    return possible() and even and min(terms, columns) >= VECTORS * _lanes()


def multiply(a: Tensor, b: Tensor) -> Tensor:
    """The product of matrices of int16, [M, K] and [K, N] -> float64 [M, N]; each lies by rows, or by columns."""
    from repro.portable.pytorch.fusion.plan import run  # which stands on products

    (rows, terms), columns = a.shape, b.shape[1]
    pairs = terms // 2
    if a.stride(1) == 1:
        left, steps = a, (a.stride(0) // 2, 1)
    else:
        left, steps = run(_paired, a.t()), (1, rows)
    right = run(_paired, b) if b.stride(1) == 1 else b.t().contiguous().view(torch.int32).t().contiguous()
    y = torch.empty(rows, columns, dtype=torch.float64)
    loops = _compiled(rows, pairs, columns, steps)
    loops([left.data_ptr(), right.data_ptr(), y.data_ptr()], loops.threads())
    return y


def _paired(X, x: Tensor) -> Tensor:  # noqa: N803
    """[K, N] -> [K / 2, N, 2]: each number beside the one below."""
    return X.stack((x[0::2], x[1::2]), 2)


def _lanes() -> int:
    """int32 numbers of a vector."""
    features = llvm.get_host_cpu_features()
    return vector_bits() // 32 if features.get("avx512bw") else 8


@cache
def _compiled(rows: int, pairs: int, columns: int, steps: tuple[int, int]) -> Compiled:
    """For a left matrix of pairs with strides for rows and pairs, and a right one [pairs, columns]."""
    lanes, height = _lanes(), min(ROWS, rows)
    short, sums = ir.VectorType(I16, 2 * lanes), ir.VectorType(I32, lanes)
    build, function = started([I32, I32, F64])
    left, right, result, begin, end = function.args
    kind = ir.FunctionType(sums, [short, short])
    name = "llvm.x86.avx512.pmaddw.d.512" if lanes == 16 else "llvm.x86.avx2.pmadd.wd"
    multiply_add = ir.Function(function.module, kind, name)
    tile = [(row, vector) for row in range(height) for vector in range(VECTORS)]
    parts = {place: build.alloca(sums) for place in tile}
    totals = {place: build.alloca(ir.VectorType(F64, lanes)) for place in tile}

    def first(turn: ir.Value, size: int, whole: int) -> ir.Value:
        """Where a tile begins; the last ones may overlap, and give the same."""
        start = build.mul(turn, I64(size))
        return build.select(build.icmp_signed(">", start, I64(whole - size)), I64(whole - size), start)

    width = VECTORS * lanes
    down, across = -(-rows // height), -(-columns // width)
    block = min(BLOCK // ROWS, down)
    with build.if_then(build.icmp_signed("<", begin, end)), Loop(build, begin, end) as turn:
        # Block by block of rows, in it by columns, and for these by rows.
        outer, inner = build.udiv(turn, I64(block * across)), build.urem(turn, I64(block * across))
        row_turn = build.add(build.mul(outer, I64(block)), build.urem(inner, I64(block)))
        row = first(row_turn, height, rows)
        column = first(build.udiv(inner, I64(block)), width, columns)
        for place in tile:
            build.store(ir.Constant(totals[place].type.pointee, [0.0] * lanes), totals[place])
        with Loop(build, I64(0), I64(-(-pairs // PAIRS))) as part:
            for place in tile:
                build.store(ir.Constant(sums, [0] * lanes), parts[place])
            start = build.mul(part, I64(PAIRS))
            stop = build.add(start, I64(PAIRS))
            stop = build.select(build.icmp_signed("<", stop, I64(pairs)), stop, I64(pairs))
            with Loop(build, start, stop) as pair:
                line = build.add(build.mul(pair, I64(columns)), column)
                many = [
                    build.load(
                        build.bitcast(build.gep(right, [build.add(line, I64(vector * lanes))]), short.as_pointer()),
                        align=4,
                    )
                    for vector in range(VECTORS)
                ]
                for number in range(height):
                    at = build.mul(build.add(row, I64(number)), I64(steps[0]))
                    one = build.load(build.gep(left, [build.add(at, build.mul(pair, I64(steps[1])))]))
                    single = build.insert_element(ir.Constant(sums, ir.Undefined), one, I32(0))
                    same = ir.Constant(sums, [0] * lanes)
                    both = build.bitcast(build.shuffle_vector(single, ir.Constant(sums, ir.Undefined), same), short)
                    for vector in range(VECTORS):
                        place = parts[number, vector]
                        build.store(build.add(build.load(place), build.call(multiply_add, [both, many[vector]])), place)
            for place in tile:
                value = build.sitofp(build.load(parts[place]), totals[place].type.pointee)
                build.store(build.fadd(build.load(totals[place]), value), totals[place])
        for number, vector in tile:
            at = build.add(build.mul(build.add(row, I64(number)), I64(columns)), column)
            where = build.gep(result, [build.add(at, I64(vector * lanes))])
            total = totals[number, vector]
            build.store(build.load(total), build.bitcast(where, total.type), align=8)
    build.ret_void()
    return compiled(function, -(-down // block) * block * across, 2 * rows * pairs * columns)
