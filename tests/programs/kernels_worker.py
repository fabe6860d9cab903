"""Runs kernels with vectors of some width, on arrays between guards, for test_kernels.py; prints JSON.

    python kernels_worker.py BITS

The name of each kernel is on stderr before it runs: of what dies there the last one is to blame.
"""

import ctypes
import itertools
import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from programs.guards import SIDES, copied, guarded
from repro.portable.kernels import machine, pairs, products, threefry, weights
from repro.portable.kernels.contraction import Sums, in_float64
from repro.portable.kernels.convolution import ONE, Convolution, Part, forward, grad_images, grad_weight, in_rows
from repro.portable.kernels.machine import ADDRESS, I64, VOID, Kernel, Loop
from repro.portable.numbers.constants import BELOW_TINY, BITS

RANDOM = np.random.default_rng(0)
Case = tuple[str, Kernel, list[np.ndarray], list[np.ndarray]]
"""Its name, operands, and what they give."""


def numbers(size: int, dtype: type) -> np.ndarray:
    """Integers of up to 2^13 in magnitude, the largest among them."""
    result = RANDOM.integers(-8192, 8193, size)
    result[RANDOM.integers(0, size, 1 + size // 8)] = 8192
    return result.astype(dtype)


# --- sums of products -------------------------------------------------------------------------------------------------

GEOMETRIES = {
    "plain": Convolution(ONE, (0, 0), ONE, 1, ""),
    "padded": Convolution(ONE, (1, 2), ONE, 1, ""),
    "rows that meet nothing": Convolution(ONE, (4, 3), ONE, 1, ""),
    "stride and groups": Convolution((2, 3), (2, 1), ONE, 2, ""),
    "dilation": Convolution(ONE, (2, 2), (2, 3), 1, ""),
}
CHANNELS = {"BHWC": (2, 16, 32), "BCHW": (2, 4, 8), "CHWB": (32, 6, 4)}
"""The batch, and the inputs and outputs of each group, by the layout."""
ODD = {"BHWC": (3, 5, 6), "CHWB": (8, 5, 3)}


def sums_of_products() -> Iterator[Case]:
    cases = [*itertools.product(CHANNELS.items(), GEOMETRIES), *itertools.product(ODD.items(), ["padded"])]
    for (layout, (batch, inputs, outputs)), name in cases:
        how = replace(GEOMETRIES[name], layout=layout)
        image, gradient = (
            tuple({"B": batch, "C": count * how.groups, "H": high, "W": wide}[axis] for axis in layout)
            for count, high, wide in ((inputs, 9, 8), (outputs, *result_sizes(how)))
        )
        weight = (outputs * how.groups, 3, 2, inputs)
        name = f"{name}, {layout}, {batch} x {inputs} -> {outputs}"
        part = forward(in_rows(image), in_rows(weight), how)
        yield from sum_of_products(f"convolution, {name}", part.sums, image, weight)
        part = grad_weight(in_rows(image), in_rows(gradient), weight, how, 1)
        yield from sum_of_products(f"of its weight, {name}", part.sums, image, gradient)
        operands = in_rows(image), in_rows(weight), how
        yield from rounded_sums(f"rounded, {name}", forward, operands, gradient, layout, image, weight)
        if how.stride == ONE:
            given = in_rows(gradient), weight, image, how, True
            size = (3 * 2 * inputs * weight[0],)
            yield from rounded_sums(f"of its images, rounded, {name}", only_part, given, image, layout, gradient, size)
        for dtype, last in ((np.float64, False), (np.int16, True)):
            for part in grad_images(in_rows(gradient), weight, image, how, last):
                taps = part.sums.axes[-3].size * part.sums.axes[-2].size * weight[0] * inputs
                yield from sum_of_products(f"of its images, {name}", part.sums, gradient, (taps,), [dtype])


def only_part(*given: Any) -> Part:
    (part,) = grad_images(*given)
    return part


def rounded_sums(
    name: str, made: Callable[..., Part], given: Any, result: tuple[int, ...], layout: str, *shapes: tuple[int, ...]
) -> Iterator[Case]:
    """Sums in units of each sample, and with a number for each channel added, rounded; the second sample is NaN."""
    units, plus = (
        np.reshape(numbers, [-1 if each == axis else 1 for each in layout])
        for axis, numbers in (
            ("B", np.ldexp(1.0, -60 - np.arange(result[layout.index("B")]) % 40)),
            ("C", (RANDOM.standard_normal(result[layout.index("C")]) * 1e-20).astype(np.float32)),
        )
    )
    units.flat[1] = np.nan
    for finish in ([units], [units, plus]):
        sums = made(*given, tuple(in_rows(each.shape).broadcast() for each in finish)).sums
        for case, kernel, operands, [exact] in sum_of_products(name, sums, *shapes):
            expected = (exact.reshape(result) * units + (plus if len(finish) == 2 else 0)).astype(np.float32)
            expected[abs(expected) <= BELOW_TINY] = 0
            yield f"{case}, {len(finish)}", kernel, [*operands, *finish], [expected.reshape(exact.shape)]


def result_sizes(how: Convolution) -> tuple[int, int]:
    """Rows and columns of what a kernel of 3 x 2 makes of images of 9 x 8."""
    return tuple(  # type: ignore[return-value]
        (size + 2 * padding - dilation * (taps - 1) - 1) // stride + 1
        for size, taps, stride, padding, dilation in zip(
            (9, 8), (3, 2), how.stride, how.padding, how.dilation, strict=True
        )
    )


def sum_of_products(
    name: str, sums: Sums, a: tuple[int, ...], b: tuple[int, ...], dtypes: Any = (np.float64, np.int16)
) -> Iterator[Case]:
    for dtype in dtypes:
        if dtype == np.float64 or pairs.possible():
            kernel = in_float64(sums) if dtype == np.float64 else pairs.in_pairs(sums)
            if kernel:  # sizes and strides are fit for it
                operands = [numbers(int(np.prod(shape)), dtype) for shape in (a, b)]
                yield f"{name}, {dtype.__name__}", kernel, operands, [summed(sums, *operands)]


def summed(sums: Sums, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The sums by the definition of Sums, element by element."""
    grid = np.indices([axis.size for axis in sums.axes], sparse=True)
    of_a = sums.start + sum(at * axis.a for at, axis in zip(grid, sums.axes, strict=True))
    of_b = sum(at * axis.b for at, axis in zip(grid, sums.axes, strict=True))
    there = np.ones((), bool)
    for limit in sums.limits:
        row = limit.start + limit.at_kept * grid[limit.kept] + limit.at_reduced * grid[limit.reduced]
        there = there & (row >= 0) & (row < limit.rows)
    terms = np.where(there, a.astype(np.int64).take(of_a, mode="clip") * b.astype(np.int64)[of_b], 0)
    return terms.sum(tuple(range(sums.kept, len(sums.axes)))).astype(np.float64)


# --- products of matrices ---------------------------------------------------------------------------------------------


def paneled(matrix: np.ndarray, tile: int) -> np.ndarray:
    """[K, N] -> [N / tile, K / 2, tile, 2]."""
    terms, columns = matrix.shape
    return matrix.reshape(terms // 2, 2, columns // tile, tile).transpose(2, 0, 3, 1).copy()


def matrices() -> Iterator[Case]:
    if not pairs.possible():
        return
    tile = products.width()
    sizes = [(1, 16, 1), (2, 46, 2), (6, 30, 1), (4, 128, 3), (68, 62, 2), (132, 16, 1)]
    for (rows, terms, count), finish in itertools.product(sizes, (0, 1, 2)):
        a, b = numbers(rows * terms, np.int16).reshape(rows, terms), numbers(terms * count * tile, np.int16)
        b = b.reshape(terms, count * tile)
        for matrix, each in ((b, tile), (a.T, products.ROWS)):
            if finish == 0 and matrix.shape[1] % each == 0:
                yield (
                    f"panels of {each}, {matrix.shape}",
                    products.panels(*matrix.shape, each),
                    [matrix],
                    [paneled(matrix, each)],
                )
        units = np.ldexp(1.0, -100 - np.arange(rows) % 40)[:, None]
        plus = (RANDOM.standard_normal(count * tile) * 1e-30).astype(np.float32)
        expected = (a.astype(np.int64) @ b.astype(np.int64)).astype(np.float64)
        if finish:
            expected = (expected * units + (plus if finish == 2 else 0)).astype(np.float32)
            expected[abs(expected) <= BELOW_TINY] = 0
        for by_rows in (True, False)[: 1 + (rows % products.ROWS == 0)]:
            product = products.Product(rows, terms // 2, count * tile, by_rows, finish)
            left = a if by_rows else paneled(a.T, products.ROWS)
            yield str(product), products.product(product), [left, paneled(b, tile), *(units, plus)[:finish]], [expected]
        if finish == 2:
            grids = [np.ldexp(np.float32(1), RANDOM.integers(-100, 100, size)) for size in (rows, count * tile)]
            product = replace(product, by_rows=True, by_columns=True, on_grids=True)
            sums = (a.astype(np.int64) @ b.astype(np.int64)) * 2.0 ** (-2 * BITS)
            with np.errstate(over="ignore"):
                expected = (sums * grids[0][:, None].astype(float) * grids[1]).astype(np.float32)
            expected[abs(expected) <= BELOW_TINY] = 0
            yield str(product), products.product(product), [a, paneled(b, tile), *grids], [expected]


def products_of_weights() -> Iterator[Case]:
    for rows, terms, columns in ((1, 1, 1), (5, 7, 3), (33, 65, 40)):
        a = RANDOM.random((4, rows, terms), np.float32) + np.float32(0.01)
        a[1:] /= a[1:].sum(-1, keepdims=True)
        a[2, 0] = 0
        a[3, 0, 0] = -a[3, 0, 0]
        b = (RANDOM.standard_normal((4, terms, columns)) * 10.0 ** RANDOM.integers(-30, 30, (4, terms, 1))).astype("f")
        a, b = (np.concatenate([each, each[:1] * 0]) for each in (a, b))
        are_weights = np.array([False, True, rows > 1, False, False])[:, None, None]
        scales = np.ldexp(np.float32(1), np.maximum(np.frexp(abs(b).max(-1))[1], -100))
        x = np.where(are_weights, a * scales[:, None], a)
        y = np.where(are_weights, b * (np.float32(2.0**BITS) / scales[..., None]), b)
        last = np.where(are_weights, np.float32(0.75 * 2.0**BITS), np.float32(0)) + np.zeros_like(y[:, :1])
        yield (
            f"weights, {a.shape}, {columns}",
            weights.of_one_form(5, rows, terms, columns),
            [a, b],
            [
                np.pad(x, ((0, 0), (0, 0), (0, 1))),
                np.concatenate([y, last], 1),
                np.where(are_weights, np.float32(2.0**-BITS), np.float32(1)),
                np.where(are_weights[..., 0], scales, np.float32(1)),
            ],
        )


# --- random numbers ---------------------------------------------------------------------------------------------------

KNOWN = [
    (0, 0, 0, 0, 0x6B200159, 0x99BA4EFE),
    (0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0x1CB996FC, 0xBB002BE7),
    (0x13198A2E, 0x03707344, 0x243F6A88, 0x85A308D3, 0xC4923A9C, 0x483DF7A0),
]
"""Keys, counters and results of Threefry-2x32 with 20 rounds, by kat_vectors of Random123 1.09."""


def random_words() -> Iterator[Case]:
    columns = [np.array(column, np.uint32) for column in zip(*KNOWN, strict=True)]
    yield "threefry, keys", threefry.threefry(len(KNOWN), False), columns[:4], columns[4:]
    for known in KNOWN:
        words = [np.full(1 if place < 2 else 37, word, np.uint32) for place, word in enumerate(known)]
        yield f"threefry, {known}", threefry.threefry(37, True), words[:4], words[4:]


# --- runs -------------------------------------------------------------------------------------------------------------


class Code:
    """The function of a kernel, of the turns to begin and to end with."""

    def __init__(self, kernel: Kernel) -> None:
        build, function = machine.entry(kernel.function.module, "some", VOID, ADDRESS.as_pointer(), I64, I64)
        addresses, *turns = function.args
        arrays = [
            build.bitcast(build.load(build.gep(addresses, [I64(index)])), argument.type)
            for index, argument in enumerate(kernel.function.args[:-2])
        ]
        build.call(kernel.function, [*arrays, *turns])
        build.ret_void()
        kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
        self.function = kind(machine.code(str(kernel.function.module), kernel.work)["some"])

    def __call__(self, arrays: list[np.ndarray], begin: int, end: int) -> None:
        self.function((ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays)), begin, end)


@cache
def code(kernel: Kernel) -> Code:
    return Code(kernel)


def run(kernel: Kernel, operands: list[np.ndarray], expected: list[np.ndarray]) -> tuple[bool, bool]:
    """Runs a kernel; returns whether the results are exact, and whether no turns leave the memory as it is."""
    exact = idle = True
    for side in SIDES:
        results = [guarded(each.shape, each.dtype.type, side) for each in expected]
        for each in results:
            each.view(np.uint8)[...] = 0xA5
        before = [each.tobytes() for each in results]
        arrays = [*(copied(each, side) for each in operands), *results]
        for turn in (0, kernel.turns):
            code(kernel)(arrays, turn, turn)
        idle &= [each.tobytes() for each in results] == before
        middle = kernel.turns // 2
        for begin, end in ((0, middle), (middle, middle), (middle, kernel.turns)):
            code(kernel)(arrays, begin, end)
        exact &= [each.tobytes() for each in results] == [each.tobytes() for each in expected]
    return exact, idle


def turns(begin: int, end: int) -> int:
    """Convolution many a Loop has."""
    build, function = machine.started([I64])
    count, *limits = function.args
    with Loop(build, *limits):
        build.store(build.add(build.load(count), I64(1)), count)
    build.ret_void()
    result = np.zeros(1, np.int64)
    code(Kernel(function, 1, 1))([result], begin, end)
    return int(result[0])


def registers(kernel: Kernel) -> set[str]:
    """The kinds of vector registers in the code of a kernel."""
    module = llvm.parse_assembly(str(kernel.function.module))
    return set(re.findall(r"\b([xyz]mm)\d", machine._machine(level=2).emit_assembly(module)))


def late() -> str:
    """The reason that the width can't be chosen any more."""
    try:
        machine.limit(int(sys.argv[1]))
    except RuntimeError as error:
        return str(error)
    return ""


def main() -> None:
    machine.limit(int(sys.argv[1]))
    results: list[list[str | bool]] = []
    used: set[str] = set()
    for name, kernel, operands, expected in itertools.chain(
        sums_of_products(), matrices(), products_of_weights(), random_words()
    ):
        print(name, file=sys.stderr, flush=True)
        results.append([name, *run(kernel, operands, expected)])
        if "plain" in name:
            used |= registers(kernel)
    answer = {
        "kernels": results,
        "late": late(),
        "pairs": pairs.possible(),
        "registers": sorted(used),
        "turns": {f"{begin} to {end}": turns(begin, end) for begin, end in ((0, 3), (3, 3), (5, 2), (-2, 1))},
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
