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


def int8_is_fast() -> bool:
    """Whether this processor has VNNI, which PyTorch's own products of int8 are made by."""
    features = llvm.get_host_cpu_features()
    return bool(features.get("avx512vnni") or features.get("avxvnni"))


def fit(rows: int, terms: int, columns: int) -> bool:
    """Whether the product of [rows, terms] and [terms, columns], and both its gradients, can be made so."""
    width = _width()
    return possible() and rows % 2 == terms % width == columns % width == 0


def multiply(a: Tensor, b: Tensor) -> Tensor:
    """The product of matrices of int16, [M, K] and [K, N] -> float64 [M, N]; each lies by rows, or by columns."""
    from repro.portable.pytorch.fusion.plan import run  # which stands on products

    (rows, terms), (_, columns), width = a.shape, b.shape, _width()
    by_rows = a.stride(1) == 1
    left = a if by_rows else run(_panels, a.t(), ROWS)
    if b.stride(1) == 1:
        right = run(_panels, b, width)
    else:
        right = b.t().view(torch.int32).view(columns // width, width, terms // 2).transpose(1, 2).contiguous()
    y = torch.empty(rows, columns, dtype=torch.float64)
    loops = _compiled(rows, terms // 2, columns, by_rows)
    loops([left.data_ptr(), right.data_ptr(), y.data_ptr()], loops.threads())
    return y


def _panels(X, x: Tensor, width: int) -> Tensor:  # noqa: N803
    """[K, N] -> [N / width, K / 2, width, 2]: each number beside the one below, in the order in which a tile reads."""
    upper, lower = (X.permute(X.reshape(x[i::2], (x.shape[0] // 2, -1, width)), (1, 0, 2)) for i in (0, 1))
    return X.stack((upper, lower), 3)


def _width() -> int:
    """Columns of a tile."""
    wide = vector_bits() == 512 and llvm.get_host_cpu_features().get("avx512bw")
    return VECTORS * (16 if wide else 8)


@cache
def _compiled(rows: int, pairs: int, columns: int, by_rows: bool) -> Compiled:
    """The left matrix lies by rows, or as _panels() of ROWS, the right one as those of _width()."""
    width, height = _width(), min(ROWS, rows)
    lanes = width // VECTORS
    short, sums, doubles = (ir.VectorType(*each) for each in ((I16, 2 * lanes), (I32, lanes), (F64, lanes)))
    build, function = started([I32, I32, F64])
    left, right, result, begin, end = function.args
    name = "llvm.x86.avx512.pmaddw.d.512" if lanes == 16 else "llvm.x86.avx2.pmadd.wd"
    multiply_add = ir.Function(function.module, ir.FunctionType(sums, [short, short]), name)
    tile = [(row, vector) for row in range(height) for vector in range(VECTORS)]
    parts, totals = {place: build.alloca(sums) for place in tile}, {place: build.alloca(doubles) for place in tile}
    across, down = columns // width, -(-rows // height)
    block = min(BLOCK // height, down)
    with build.if_then(build.icmp_signed("<", begin, end)), Loop(build, begin, end) as turn:
        # Block by block of rows, in it by columns, and for these by rows.
        outer, inner = build.udiv(turn, I64(block * across)), build.urem(turn, I64(block * across))
        row = build.mul(build.add(build.mul(outer, I64(block)), build.urem(inner, I64(block))), I64(height))
        # The last tiles may begin sooner, and give the same as the ones before.
        row = build.select(build.icmp_signed(">", row, I64(rows - height)), I64(rows - height), row)
        panel = build.udiv(inner, I64(block))
        for place in tile:
            build.store(doubles([0.0] * lanes), totals[place])
        with Loop(build, I64(0), I64(-(-pairs // PAIRS))) as part:
            for place in tile:
                build.store(sums([0] * lanes), parts[place])
            start = build.mul(part, I64(PAIRS))
            stop = build.add(start, I64(PAIRS))
            stop = build.select(build.icmp_signed("<", stop, I64(pairs)), stop, I64(pairs))
            with Loop(build, start, stop) as pair:
                line = build.mul(build.add(build.mul(panel, I64(pairs)), pair), I64(width))
                many = []
                for vector in range(VECTORS):
                    address = build.gep(right, [build.add(line, I64(vector * lanes))])
                    many.append(build.load(build.bitcast(address, short.as_pointer()), align=4))
                for number in range(height):
                    apart, step = (pairs, 1) if by_rows else (1, height)
                    offset = build.add(build.mul(row, I64(pairs)), I64(number * apart))
                    one = build.load(build.gep(left, [build.add(offset, build.mul(pair, I64(step)))]))
                    single = build.insert_element(sums(ir.Undefined), one, I32(0))
                    both = build.shuffle_vector(single, sums(ir.Undefined), sums([0] * lanes))
                    for vector, others in enumerate(many):
                        found = build.call(multiply_add, [build.bitcast(both, short), others])
                        place = parts[number, vector]
                        build.store(build.add(build.load(place), found), place)
            for place in tile:
                value = build.sitofp(build.load(parts[place]), doubles)
                build.store(build.fadd(build.load(totals[place]), value), totals[place])
        for number, vector in tile:
            offset = build.add(build.mul(build.add(row, I64(number)), I64(columns)), build.mul(panel, I64(width)))
            where = build.gep(result, [build.add(offset, I64(vector * lanes))])
            total = totals[number, vector]
            build.store(build.load(total), build.bitcast(where, total.type), align=8)
    build.ret_void()
    return compiled(function, -(-down // block) * block * across, 2 * rows * pairs * columns)
