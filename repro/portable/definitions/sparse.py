"""Products of sparse matrices with dense ones."""

from repro.portable.definitions import targets
from repro.portable.definitions.xp import Array, Backend


def product(xp: Backend, rows: Array, columns: Array, values: Array, dense: Array, height: int) -> Array:
    """The sums by row of values [M] times rows of a dense matrix [K, N] -> float64 [height, N].

    Each product is rounded to the type of its factors; the sums are exact, on a grid for each row.
    """
    return targets.by_index(xp, xp.reshape(values, (-1, 1)) * xp.take_rows(dense, columns), rows, height)
