"""Products of sparse matrices with dense ones."""

from repro.portable.definitions import sums
from repro.portable.definitions.xp import Array, Backend


def product(xp: Backend, rows: Array, columns: Array, values: Array, dense: Array, height: int) -> Array:
    """The sums by row of values [M] times rows of a dense matrix [K, N] -> float64 [height, N].

    Each product is rounded to the type of its factors; the sums are exact, on one grid for all of them.
    """
    terms = xp.reshape(values, (-1, 1)) * xp.take_rows(dense, columns)
    if 0 in tuple(terms.shape):
        return xp.add_at(rows, terms, height)
    return sums.joined(sums.sliced(xp, terms, (0, 1), numbers=2), lambda q: xp.add_at(rows, q, height))
