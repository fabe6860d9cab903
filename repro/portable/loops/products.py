"""Exact products of matrices of int16, in pairs as those of pairs.py, and in an order that keeps them in the caches."""

from collections.abc import Sequence
from functools import cache

from llvmlite import ir

from repro.portable.loops.machine import F64, I16, I32, I64, Loop, Loops, features, started
from repro.portable.loops.pairs import MULTIPLY_ADD, PAIRS, possible, widest

ROWS, VECTORS = 4, 2
"""Of a tile of the result: its sums are in registers."""
BLOCK = 64
"""Rows of the first matrix that stay in the cache."""


def int8_is_fast() -> bool:
    """Whether this processor has VNNI, which PyTorch's own products of int8 are made by."""
    return bool(features().get("avx512vnni") or features().get("avxvnni"))


def width() -> int:
    """Columns of a tile."""
    return VECTORS * widest()


def fit(shape: Sequence[int], outputs: int, layout: str) -> bool:
    """Whether a product of matrices, [M, K] and [K, outputs], and both its gradients, can be made so.

    Or a convolution of images of this shape and layout, see convolution.py.
    """
    if layout:
        return possible() and layout.endswith("B") and shape[-1] % 8 == 0
    return possible() and len(shape) == 2 and shape[0] % 2 == shape[1] % width() == outputs % width() == 0


@cache
def panels(terms: int, columns: int, tile: int) -> Loops:
    """Loops over a matrix [K, N], int16, by rows, and its panels, [N / tile, K / 2, tile, 2].

    Each number lies beside the one below, in the order in which a tile reads.
    """
    build, function = started([I16, I16])
    matrix, result, begin, end = function.args
    row, both = ir.VectorType(I16, tile), ir.VectorType(I16, 2 * tile)
    order = ir.VectorType(I32, 2 * tile)([half * tile + at for at in range(tile) for half in range(2)])
    # Pair by pair of rows, which lie in memory one after another.
    some, across = build.if_then(build.icmp_signed("<", begin, end)), I64(columns // tile)
    with some, Loop(build, begin, end) as pair, Loop(build, I64(0), across) as panel:
        upper = build.add(build.mul(pair, I64(2 * columns)), build.mul(panel, I64(tile)))
        given = [
            build.load(build.bitcast(build.gep(matrix, [place]), row.as_pointer()), align=2)
            for place in (upper, build.add(upper, I64(columns)))
        ]
        there = build.mul(build.add(build.mul(panel, I64(terms // 2)), pair), I64(2 * tile))
        place = build.bitcast(build.gep(result, [there]), both.as_pointer())
        build.store(build.shuffle_vector(*given, order), place, align=2)
    build.ret_void()
    return Loops(function, terms // 2, terms * columns)


@cache
def product(rows: int, pairs: int, columns: int, by_rows: bool) -> Loops:
    """Loops over two matrices of pairs, int32, and their product, float64.

    The left one lies by rows, or as panels() of ROWS, the right one as those of width().
    """
    tile_columns, height = width(), min(ROWS, rows)
    lanes = tile_columns // VECTORS
    short, sums, doubles = (ir.VectorType(*each) for each in ((I16, 2 * lanes), (I32, lanes), (F64, lanes)))
    build, function = started([I32, I32, F64])
    left, right, result, begin, end = function.args
    multiply_add = ir.Function(function.module, ir.FunctionType(sums, [short, short]), MULTIPLY_ADD[lanes])
    tile = [(row, vector) for row in range(height) for vector in range(VECTORS)]
    parts, totals = {place: build.alloca(sums) for place in tile}, {place: build.alloca(doubles) for place in tile}
    across, down = columns // tile_columns, -(-rows // height)
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
                line = build.mul(build.add(build.mul(panel, I64(pairs)), pair), I64(tile_columns))
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
            offset = build.add(
                build.mul(build.add(row, I64(number)), I64(columns)), build.mul(panel, I64(tile_columns))
            )
            where = build.gep(result, [build.add(offset, I64(vector * lanes))])
            total = totals[number, vector]
            build.store(build.load(total), build.bitcast(where, total.type), align=8)
    build.ret_void()
    return Loops(function, -(-down // block) * block * across, 2 * rows * pairs * columns)
