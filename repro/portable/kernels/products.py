"""Int16 products of matrices, in tiles.

Exact products of matrices of int16, in pairs as those of pairs.py, and in an order that keeps them in the caches.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from llvmlite import ir

from repro.portable.kernels.contraction import rounded
from repro.portable.kernels.machine import F32, F64, I16, I32, I64, Kernel, Loop, features, splat, started
from repro.portable.kernels.pairs import MULTIPLY_ADD, PAIRS, possible, widest
from repro.portable.numbers.constants import BITS

ROWS, VECTORS = 4, 2
"""The size of a tile of the result, whose sums are in registers."""
BLOCK = 64
"""Rows of the first matrix that stay in the cache."""
HALF = 16
"""A sum of PAIRS is added up twice: as it is, modulo 2^32, and without these lower bits."""
LONGEST = 2 * PAIRS * 2**15
"""The largest number of terms that both sums have room for."""


def int8_is_fast() -> bool:
    """True if this processor has VNNI, which PyTorch's own products of int8 use."""
    return bool(features().get("avx512vnni") or features().get("avxvnni"))


def width() -> int:
    """Columns of a tile."""
    return VECTORS * widest()


def fit(shape: Sequence[int], outputs: int, layout: str) -> bool:
    """True if a product of matrices, [M, K] and [K, outputs], and both its gradients, can be made so.

    With a layout: of a convolution of images of this shape, see convolution.py.
    """
    if layout:
        return possible() and layout.endswith("B") and shape[-1] % 8 == 0
    if not possible() or len(shape) != 2 or max(*shape, outputs) > LONGEST:
        return False
    return shape[0] % 2 == shape[1] % width() == outputs % width() == 0


def _check_panels(terms: int, columns: int, tile: int) -> None:
    if terms % 2 or columns % tile:
        raise ValueError(f"a matrix [{terms}, {columns}] is not made of pairs of rows in panels of {tile} columns")


@cache
def panels(terms: int, columns: int, tile: int) -> Kernel:
    """Kernel over a matrix [K, N], int16, by rows, and its panels, [N / tile, K / 2, tile, 2].

    Each number lies beside the one below, in the order in which a tile reads.
    """
    _check_panels(terms, columns, tile)
    build, function = started([I16, I16])
    matrix, result, begin, end = function.args
    row, both = ir.VectorType(I16, tile), ir.VectorType(I16, 2 * tile)
    order = ir.VectorType(I32, 2 * tile)([half * tile + at for at in range(tile) for half in range(2)])
    # Pair by pair of rows, which lie in memory one after another.
    with Loop(build, begin, end) as pair, Loop(build, I64(0), I64(columns // tile)) as panel:
        upper = build.add(build.mul(pair, I64(2 * columns)), build.mul(panel, I64(tile)))
        given = [
            build.load(build.bitcast(build.gep(matrix, [place]), row.as_pointer()), align=2)
            for place in (upper, build.add(upper, I64(columns)))
        ]
        there = build.mul(build.add(build.mul(panel, I64(terms // 2)), pair), I64(2 * tile))
        place = build.bitcast(build.gep(result, [there]), both.as_pointer())
        build.store(build.shuffle_vector(*given, order), place, align=2)
    build.ret_void()
    return Kernel(function, terms // 2, terms * columns)


@cache
def turned(terms: int, columns: int, tile: int) -> Kernel:
    """Pack a matrix that is stored by columns, [N, K]; its pairs are neighbors already."""
    _check_panels(terms, columns, tile)
    pairs = terms // 2
    build, function = started([I32, I32])
    matrix, result, begin, end = function.args
    with (
        Loop(build, begin, end) as panel,
        Loop(build, I64(0), I64(pairs)) as pair,
        Loop(build, I64(0), I64(tile)) as at,
    ):
        column = build.add(build.mul(panel, I64(tile)), at)
        given = build.load(build.gep(matrix, [build.add(build.mul(column, I64(pairs)), pair)]))
        there = build.add(build.mul(build.add(build.mul(panel, I64(pairs)), pair), I64(tile)), at)
        build.store(given, build.gep(result, [there]))
    build.ret_void()
    return Kernel(function, columns // tile, terms * columns)


@dataclass(frozen=True)
class Product:
    """A product of two matrices of pairs, int32: its sizes, and what follows the sums.

    The left matrix lies by rows, or as panels() of ROWS; the right one as those of width().
    """

    rows: int
    pairs: int
    columns: int
    by_rows: bool
    finish: int
    """The number of arrays that follow them, 0 to 2.

    First a power of two for each row, float64, that it is multiplied by, then a number for each column, float32, that
    is added. With one of them the result is rounded as r32 does, float32; with none it is exact, float64.
    """
    batch: int = 1
    """Products one after another."""
    by_columns: bool = False
    """True if the second of two arrays that follow is a power of two for each column, float64, instead."""
    on_grids: bool = False
    """True if the powers of two are grids of BITS bits as those of grids.py, float32: a sum is in units of 2^-BITS of each."""


@cache
def product(given: Product) -> Kernel:
    """Kernel over the arrays of a product, the last of which is the result."""
    rows, pairs, columns = given.rows, given.pairs, given.columns
    tile_columns, height = width(), min(ROWS, rows)
    if columns % tile_columns or 2 * pairs > LONGEST or not (given.by_rows or rows % ROWS == 0):
        raise ValueError(f"no kernel for {given}: tiles are of {tile_columns} columns, panels of {ROWS} rows")
    lanes = tile_columns // VECTORS
    short, sums = ir.VectorType(I16, 2 * lanes), ir.VectorType(I32, lanes)
    none, half = sums([0] * lanes), sums([HALF] * lanes)
    scale = F32 if given.on_grids else F64
    more = (scale, scale if given.by_columns else F32)[: given.finish]
    build, function = started([I32, I32, *more, F32 if given.finish else F64])
    left, right, *finish, result, begin, end = function.args
    multiply_add = ir.Function(function.module, ir.FunctionType(sums, [short, short]), MULTIPLY_ADD[lanes])
    tile = [(row, vector) for row in range(height) for vector in range(VECTORS)]
    parts, upper, whole = ({place: build.alloca(sums) for place in tile} for _ in range(3))
    across, down = columns // tile_columns, -(-rows // height)
    block = min(BLOCK // height, down)
    turns = -(-down // block) * block * across
    with Loop(build, begin, end) as number_of_turn:
        matrix, turn = build.udiv(number_of_turn, I64(turns)), build.urem(number_of_turn, I64(turns))
        lines, line_of_columns = build.mul(matrix, I64(rows)), build.mul(matrix, I64(columns))
        # Block by block of rows, in it by columns, and for these by rows.
        outer, inner = build.udiv(turn, I64(block * across)), build.urem(turn, I64(block * across))
        row = build.mul(build.add(build.mul(outer, I64(block)), build.urem(inner, I64(block))), I64(height))
        # The last tiles may begin sooner, and give the same as the ones before.
        row = build.select(build.icmp_signed(">", row, I64(rows - height)), I64(rows - height), row)
        panel = build.udiv(inner, I64(block))
        for place in tile:
            build.store(none, upper[place])
            build.store(none, whole[place])
        with Loop(build, I64(0), I64(-(-pairs // PAIRS))) as part:
            for place in tile:
                build.store(none, parts[place])
            start = build.mul(part, I64(PAIRS))
            stop = build.add(start, I64(PAIRS))
            stop = build.select(build.icmp_signed("<", stop, I64(pairs)), stop, I64(pairs))
            with Loop(build, start, stop) as pair:
                before = build.add(build.mul(build.add(build.mul(matrix, I64(across)), panel), I64(pairs)), pair)
                line = build.mul(before, I64(tile_columns))
                many = []
                for vector in range(VECTORS):
                    address = build.gep(right, [build.add(line, I64(vector * lanes))])
                    many.append(build.load(build.bitcast(address, short.as_pointer()), align=4))
                for number in range(height):
                    apart, step = (pairs, 1) if given.by_rows else (1, height)
                    offset = build.add(build.mul(build.add(lines, row), I64(pairs)), I64(number * apart))
                    one = build.load(build.gep(left, [build.add(offset, build.mul(pair, I64(step)))]))
                    both = build.bitcast(splat(build, one, lanes), short)
                    for vector, others in enumerate(many):
                        results = build.call(multiply_add, [both, others])
                        place = parts[number, vector]
                        build.store(build.add(build.load(place), results), place)
            for place in tile:
                results = build.load(parts[place])
                build.store(build.add(build.load(upper[place]), build.ashr(results, half)), upper[place])
                build.store(build.add(build.load(whole[place]), results), whole[place])
        for number, vector in tile:
            here = build.add(build.add(lines, row), I64(number))
            there = build.add(build.mul(panel, I64(tile_columns)), I64(vector * lanes))
            total = _total(build, build.load(upper[number, vector]), build.load(whole[number, vector]), lanes)
            total = _finished(build, given, total, finish, here, build.add(line_of_columns, there))
            where = build.gep(result, [build.add(build.mul(here, I64(columns)), there)])
            build.store(total, build.bitcast(where, total.type.as_pointer()), align=4)
    build.ret_void()
    return Kernel(function, turns * given.batch, 2 * rows * pairs * columns * given.batch)


def _total(build: ir.IRBuilder, upper: ir.Value, whole: ir.Value, lanes: int) -> ir.Value:
    """The sum whose upper parts add up to `upper`, and which is `whole` modulo 2^32, float64.

    What the upper parts leave out is at least 0, and below 2^31: `whole` knows it.
    """
    doubles = ir.VectorType(F64, lanes)
    rest = build.sub(whole, build.shl(upper, upper.type([HALF] * lanes)))
    scaled = build.fmul(build.sitofp(upper, doubles), doubles([2.0**HALF] * lanes))
    return build.fadd(scaled, build.sitofp(rest, doubles))


def _finished(
    build: ir.IRBuilder, given: Product, total: ir.Value, finish: Sequence[ir.Value], row: ir.Value, column: ir.Value
) -> ir.Value:
    """Finishes a sum, see Product.finish."""
    if not finish:
        return total
    lanes = total.type.count
    doubles = ir.VectorType(F64, lanes)
    units, *more = finish
    unit = build.load(build.gep(units, [row]))
    if given.on_grids:
        unit = build.fmul(build.fpext(unit, F64), F64(2.0 ** (-2 * BITS)))
    total = build.fmul(total, splat(build, unit, lanes))
    for each in more:
        numbers = ir.VectorType(each.type.pointee, lanes)
        address = build.bitcast(build.gep(each, [column]), numbers.as_pointer())
        number = build.load(address, align=8 if numbers == doubles else 4)
        number = number if numbers == doubles else build.fpext(number, doubles)
        total = build.fmul(total, number) if given.by_columns else build.fadd(total, number)
    return rounded(build, total)
