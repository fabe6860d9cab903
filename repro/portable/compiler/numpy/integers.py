"""Exact products of matrices of int16, by the kernels of repro.portable.kernels."""

from functools import cache
from typing import Any

import numpy as np

from repro.portable import kernels
from repro.portable.backends.numpy import Array
from repro.portable.compiler.numpy.copies import contiguous
from repro.portable.compiler.numpy.plan import run
from repro.portable.definitions.grids import check_length, sliced

available = kernels.paired()
"""True if this processor has instructions for pairs of int16; may be set to False."""

if available:
    from llvmlite import ir

    from repro.portable.kernels import products
    from repro.portable.kernels.machine import ADDRESS, I8, I64, VOID, Kernel, Loop, entry
    from repro.portable.kernels.numpy.threads import Code, compiling, empty


SPEED = 16
"""Products of int16 in the time of one element."""

FINISHED = (np.float64, np.float32)
"""The type of a product, and of one in units."""


def fits(x: Array, terms: int) -> bool:
    """True if kernels can sum this number of products of the type of x."""
    return available and x.dtype == np.float32 and terms <= products.LONGEST


def quantized(x: Array, axes: tuple[int, ...], slices: int) -> tuple[list[Array], Array]:
    """The slices of an operand, int16, and its scales: see grids.sliced."""
    return run(axes, _sliced, x, axes, slices)


def _sliced(xp: Any, x: Any, axes: tuple[int, ...], slices: int) -> Any:
    """Slices of zeros where a group is NaN: an integer of infinity or NaN is another one in a kernel than in NumPy."""
    parts, p = sliced(xp, x, axes, slices)
    return [xp.int16(xp.where(p == p, each, 0.0)) for each in parts], p


def _padded(x: Array, rows: int, columns: int) -> Array:
    """Matrices with zeros below and beside, in a row."""
    missing = rows - x.shape[-2], columns - x.shape[-1]
    if not any(missing):
        return np.ascontiguousarray(x)
    padded = np.zeros((*x.shape[:-2], rows, columns), np.int16)
    padded[..., : x.shape[-2], : x.shape[-1]] = x
    return padded


def _up(size: int, step: int) -> int:
    return -(-size // step) * step


def multiply(
    a: Array,
    b: Array,
    a_turned: bool = False,
    b_turned: bool = False,
    units: Array | None = None,
    into: Array | None = None,
) -> Array:
    """Multiplies [B, M, K] and [B, K, N], or [B, K, M] and [B, N, K] where turned -> float64 [B, M, N].

    With a power of two for each row of one matrix that is not turned, float64 [M], times that, and rounded to float32.
    `into`: an array for the result.
    """
    terms, rows = a.shape[-2:] if a_turned else a.shape[:-3:-1]
    columns, width = b.shape[-2 if b_turned else -1], products.width()
    check_length(terms)
    even, wide, high = _up(terms, 2), _up(columns, width), _up(rows, products.ROWS) if a_turned else rows
    left = _padded(a, even, high) if a_turned else _padded(a, rows, even)
    right = _padded(b, wide, even) if b_turned else _padded(b, even, wide)
    batch = len(left)
    if a_turned:
        kernel = made(products.panels, even, high, products.ROWS)
        left = called(kernel, (even * high, even * high), np.int16, batch, left)
    kernel = made(products.turned if b_turned else products.panels, even, wide, width)
    right = called(kernel, (even * wide, even * wide), np.int16, batch, right)
    finish = [] if units is None else [units]
    kernel = made(products.product, products.Product(high, even // 2, wide, not a_turned, len(finish)))
    sizes, dtype = (left[0].size, right[0].size, *(each.size for each in finish), high * wide), FINISHED[len(finish)]
    target = into if (high, wide) == (rows, columns) else None
    result = called(kernel, sizes, dtype, batch, left, right, *finish, speed=SPEED, into=target)
    result = result.reshape(batch, high, wide)[:, :rows, :columns]
    return result if into is None or into is target else contiguous(result, into.reshape(result.shape))


def made(maker: Any, *arguments: Any) -> "Kernel":
    with compiling:
        return maker(*arguments)


def called(
    kernel: "Kernel",
    sizes: tuple[int, ...],
    dtype: Any,
    batch: int,
    *arrays: Array,
    speed: int = 1,
    into: Array | None = None,
) -> Array:
    """Calls a kernel on the arrays of each sample of a batch. `sizes`: elements of each array and of the result."""
    result = empty((batch, sizes[-1]), dtype) if into is None else into
    itemsizes = tuple(each.itemsize for each in (*arrays, result))
    steps = tuple(size * item for size, item in zip(sizes, itemsizes, strict=True)) if batch > 1 else (0,) * len(sizes)
    with compiling:
        each = code(kernel, steps)
    each([*arrays, result], batch * kernel.turns, batch * kernel.work // speed)
    return result


@cache
def code(kernel: "Kernel", steps: tuple[int, ...]) -> "Code":
    """The machine code of a kernel for a batch: units are its turns, one array after the other."""
    name = "batch_" + "_".join(map(str, steps))
    build, call = entry(kernel.function.module, name, VOID, ADDRESS.as_pointer(), I64, I64)
    addresses, begin, end = call.args
    turns, zero = I64(kernel.turns), I64(0)
    last = build.sdiv(build.add(end, I64(kernel.turns - 1)), turns)
    with Loop(build, build.sdiv(begin, turns), last) as number:
        first = build.mul(number, turns)
        start, stop = build.sub(begin, first), build.sub(end, first)
        start = build.select(build.icmp_signed(">", start, zero), start, zero)
        stop = build.select(build.icmp_signed("<", stop, turns), stop, turns)
        given: list[ir.Value] = []
        for index, (argument, step) in enumerate(zip(kernel.function.args, steps, strict=False)):
            address = build.bitcast(build.load(build.gep(addresses, [I64(index)])), I8.as_pointer())
            given.append(build.bitcast(build.gep(address, [build.mul(number, I64(step))]), argument.type))
        build.call(kernel.function, [*given, start, stop])
    build.ret_void()
    return Code(kernel.function.module, name)
