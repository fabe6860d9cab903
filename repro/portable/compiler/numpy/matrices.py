"""Products of float32 matrices, of one slice, by kernels.

Each operand becomes int16 in the order in which the product reads it, and what the product finds is rounded at once.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from repro.portable.backends.numpy import Array
from repro.portable.compiler.numpy import integers
from repro.portable.compiler.numpy.chains import Chain
from repro.portable.compiler.numpy.copies import contiguous
from repro.portable.definitions.grids import check_length
from repro.portable.numbers.constants import BITS

if integers.available:
    from repro.portable.compiler.numpy.integers import SPEED, code
    from repro.portable.kernels import grids, layout, products
    from repro.portable.kernels.machine import Kernel
    from repro.portable.kernels.numpy.threads import compiling, empty

COLUMNS = 16
"""The number of columns that are made at a time, for a left operand stored by columns."""
LEFT, RIGHT, RESULT = range(3)


@dataclass(frozen=True)
class Sizes:
    """The sizes of two factors, [batch, rows, terms] and [batch, terms, columns], and whether they lie by columns."""

    batch: int
    rows: int
    terms: int
    columns: int
    left_turned: bool
    right_turned: bool


def product(a: Array, b: Array) -> Array:
    """Multiplies [B, M, K] and [B, K, N] -> [B, M, N]: a grid for each row, and for each column, and one rounding."""
    check_length(a.shape[-1])
    (a, left_turned), (b, right_turned) = _lying(a), _lying(b)
    rows, terms = a.shape[:0:-1] if left_turned else a.shape[1:]
    columns = b.shape[-2 if right_turned else -1]
    result = empty((len(a), rows, columns), np.float32)
    with compiling:
        chain = _chain(Sizes(len(a), rows, terms, columns, left_turned, right_turned))
    chain(a, b, result)
    return result


def _lying(x: Array) -> tuple[Array, bool]:
    """Matrices as they lie in memory, and whether that is by columns."""
    turned = x.strides[-1] > x.strides[-2]
    return contiguous(x.swapaxes(-1, -2) if turned else x), turned


@cache
def _chain(sizes: Sizes) -> Chain:
    chain, tile, batch = Chain(3), products.width(), sizes.batch
    even, wide = sizes.terms + sizes.terms % 2, sizes.columns + -sizes.columns % tile
    high = sizes.rows + (-sizes.rows % COLUMNS if sizes.left_turned else 0)

    def step(kernel: Kernel, *arrays: int, speed: int = 1) -> None:
        chain.step(code(kernel, (0,) * len(arrays)), arrays, kernel.turns, kernel.work // speed)

    q, p = chain.room(batch * high * even, np.int16), chain.room(batch * high, np.float32)
    if sizes.left_turned:
        step(grids.panels(batch, sizes.terms, sizes.rows, COLUMNS, products.ROWS), LEFT, q, p)
    else:
        step(grids.rows(batch * high, sizes.terms, even), LEFT, q, p)
    w, s = chain.room(batch * wide * even, np.int16), chain.room(batch * wide, np.float32)
    size = wide
    if sizes.right_turned:
        size = sizes.columns
        lines = chain.room((batch * size + wide) * even, np.int16)
        step(grids.rows(batch * size, sizes.terms, even), RIGHT, lines, s)
        kernel = products.turned(even, wide, tile)
        steps = 2 * size * even, 2 * wide * even
        chain.step(code(kernel, steps), (lines, w), batch * kernel.turns, batch * kernel.work)
    else:
        step(grids.panels(batch, sizes.terms, sizes.columns, tile), RIGHT, w, s)
    units, scales = chain.room(batch * high, np.float64), chain.room(batch * wide, np.float64)
    step(layout.widened(1, batch * high, batch * high, -2 * BITS), p, units)
    step(layout.widened(batch, size, wide, 0), s, scales)
    whole = (high, wide) == (sizes.rows, sizes.columns)
    target = RESULT if whole else chain.room(batch * high * wide, np.float32)
    given = products.Product(high, even // 2, wide, not sizes.left_turned, 2, batch, by_columns=True)
    step(products.product(given), q, w, units, scales, target, speed=SPEED)
    if not whole:
        step(layout.cut(batch, sizes.rows, sizes.columns, high, wide), target, RESULT)
    return chain
