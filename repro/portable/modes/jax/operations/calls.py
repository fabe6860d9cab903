"""Products and sums as calls of kernels, on a CPU that has them.

They give what the definitions give, in fewer passes over memory, and XLA has less to compile.
"""

import math
from collections.abc import Sequence

from jax import Array
from jax import numpy as jnp

from repro.portable import kernels
from repro.portable.backends.jax import Backend

if kernels.available:
    from repro.portable.kernels import grids, products, weights
    from repro.portable.kernels import jax as ffi
    from repro.portable.kernels import patches as of_images
    from repro.portable.kernels import threefry as of_keys
    from repro.portable.kernels.patches import Windows as Windows

LEAST_WORK, LEAST_SUMMED = 2**12, 2**6
"""Multiplications, and numbers that are added: of fewer, a call of a kernel takes longer than it saves."""
MOST_HELD = 2**4
"""Results of a function that XLA is kept from computing again."""


def multiplies(x: Array, rows: int, terms: int, columns: int) -> bool:
    """True if products of matrices of these sizes, of the type of x, are calls of kernels."""
    if not Backend.calls_kernels() or x.dtype != jnp.float32:
        return False
    return rows * terms * columns >= LEAST_WORK and terms < products.LONGEST - 1


def adds(x: Array, axes: Sequence[int]) -> bool:
    """True if sums of x along these axes are calls of kernels."""
    together = sorted(axes) == list(range(min(axes), max(axes) + 1))
    return Backend.calls_kernels() and x.dtype == jnp.float32 and x.size >= LEAST_SUMMED and together


def product(a: Array, b: Array, unit: Array | None = None) -> Array:
    """float32 [B, M, K] and [B, K, N] -> [B, M, N], rounded once: a grid for each row, and for each column.

    Times a power of two for each matrix, float32 [B, 1, 1], before they are rounded.
    """
    batch, rows, terms = a.shape
    q, p = quantized(a.reshape(batch * rows, terms), terms + terms % 2)
    w, s = panels(b)
    if unit is not None:
        p = (p.reshape(batch, rows, 1) * unit).reshape(-1)
    return _multiplied(q, w, (p, s), (batch, rows, b.shape[-1]))


def of_one_form(a: Array, b: Array) -> tuple[Array, Array, Array]:
    """Factors, and a unit for each matrix, [B, 1, 1]: see repro.portable.definitions.products.of_one_form."""
    batch, rows, terms = a.shape
    columns = b.shape[-1]
    shapes = (batch, rows, terms + 1), (batch, terms + 1, columns), (batch, 1, 1), (batch, terms)
    made = weights.of_one_form(batch, rows, terms, columns)
    x, y, unit, _ = ffi.call_all(made, [("float32", shape) for shape in shapes], a, b)
    return x, y, unit


def quantized(x: Array, width: int) -> tuple[Array, Array]:
    """float32 [M, K] -> int16 [M, width], with zeros behind; a grid for each row, float32 [M]."""
    groups, size = x.shape
    results = [("int16", (groups, width)), ("float32", (groups,))]
    q, p = ffi.call_all(grids.rows(groups, size, width), results, x)
    return q, p


def panels(x: Array) -> tuple[Array, Array]:
    """float32 [B, K, N] -> panels of int16, and a grid for each column, float32 [B, N'], with N' as wide as panels."""
    batch, terms, columns = x.shape
    tile = products.width()
    wide = columns + -columns % tile
    results = [("int16", (batch * (terms + terms % 2) * wide,)), ("float32", (batch, wide))]
    q, p = ffi.call_all(grids.panels(batch, terms, columns, tile), results, x)
    return q, p


def panels_of_one_grid(x: Array) -> tuple[Array, Array]:
    """float32 [K, N] -> panels of int16, and the grid of all, float32 []."""
    terms, columns = x.shape
    q, p = quantized(x.reshape(1, terms * columns), terms * columns)
    tile = products.width()
    q = jnp.pad(q.reshape(terms, columns), ((0, terms % 2), (0, -columns % tile)))
    return ffi.call(products.panels(*q.shape, tile), "int16", (q.size,), q), p[0]


def patches(q: Array, windows: "Windows", width: int) -> Array:
    """int16 [B, ..., C] -> rows [B out, width]: see repro.portable.kernels.patches."""
    made = of_images.patches(q.shape[0], q.shape[-1], windows, width)
    return ffi.call(made, "int16", (q.shape[0] * math.prod(windows.out), width), q)


def one_grid(q: Array, w: Array, units: Array, columns: int) -> Array:
    """Rows of int16 times panels, [K, N], times a power of two for each row, float64 [M, 1] -> float32 [M, N]."""
    return _multiplied(q, w, (units,), (1, q.shape[0], columns))[0]


def _multiplied(q: Array, w: Array, scales: Sequence[Array], shape: tuple[int, int, int]) -> Array:
    """Rows times panels, times powers of two for each row; or, where columns have some as well, times grids of both."""
    batch, rows, columns = shape
    wide, both = columns + -columns % products.width(), len(scales) == 2
    given = products.Product(rows, q.shape[-1] // 2, wide, True, len(scales), batch, by_columns=both, on_grids=both)
    result = ffi.call(products.product(given), "float32", (batch, rows, wide), q, w, *scales)
    return result[..., :columns]


def total(x: Array, axes: Sequence[int]) -> Array:
    """The exact sum of float32 along axes that follow one another, rounded once."""
    first, last = min(axes), max(axes) + 1
    before, after = x.shape[:first], x.shape[last:]
    terms = math.prod(x.shape[first:last])
    across = math.prod(before) if terms == 1 else 1  # sums of one term lie beside one another
    made = grids.sums(math.prod(before) // across, terms, math.prod(after) * across)
    return ffi.call(made, "float32", (*before, *after), x)


def threefry(key: Sequence[Array], counter: Sequence[Array], shape: tuple[int, ...]) -> tuple[Array, ...]:
    """Both words of Threefry-2x32, uint32 of a shape; of both words of a key and of a counter, which broadcast to it."""
    of_one_key = all(each.size == 1 for each in key)
    spread = counter if of_one_key else (*key, *counter)
    words = [jnp.broadcast_to(each, shape) for each in spread]
    made = of_keys.threefry(math.prod(shape), of_one_key)
    return ffi.call_all(made, [("uint32", shape)] * 2, *(key if of_one_key else ()), *words)


def held(x: Array) -> Array:
    """Hold a few numbers in memory, where kernels are called.

    XLA would compute them again in each loop that reads them, as an optimizer's powers in the loop of each weight.
    """
    return ffi.materialized(x) if Backend.calls_kernels() and 0 < x.size <= MOST_HELD else x
