"""Layouts: how the elements of one array lie in another, up to transposition, reshaping and order of blocks."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from math import prod

import numpy as np

BLOCKS = (2, 3, 4)
"""Numbers of blocks in an axis: halves, query, key and value or the gates of a GRU, the gates of an LSTM."""
MOST_AXES = 5


@dataclass(frozen=True)
class Layout:
    """Where each element of an array of A lies in an array of B."""

    take: np.ndarray
    """Indices into B's elements, in the order of A's: int64, of A's shape."""
    words: str
    """How B's array becomes A's; empty where it is the same."""
    blocks: tuple[int, ...] = ()
    """The order in which A has B's blocks, where that is another one."""

    def __call__(self, array: np.ndarray) -> np.ndarray:
        """An array of B in A's layout."""
        return np.asarray(array).reshape(-1)[self.take]


def of_axes(ours: tuple[int, ...], theirs: tuple[int, ...]) -> Iterator[Layout]:
    """The layouts that permute axes and reshape, plain ones first."""
    if prod(ours) != prod(theirs) or max(len(ours), len(theirs)) > MOST_AXES:
        return
    index = np.arange(prod(theirs)).reshape(theirs)
    if ours == theirs:
        yield Layout(index, "")
    # The plain transposition goes before all others: for a dense layer, which has no other.
    orders = sorted(permutations(range(len(theirs))), key=lambda order: order != tuple(range(len(theirs)))[::-1])
    for order in orders:
        moved = index.transpose(order)
        identity = order == tuple(range(len(theirs)))
        if moved.shape == ours and not identity:
            yield Layout(moved, _words(order))
        elif moved.shape != ours:
            yield Layout(moved.reshape(ours), "reshaped" if identity else f"{_words(order)}, reshaped")
    if len(ours) > len(theirs):
        for order in permutations(range(len(ours))):
            if order != tuple(range(len(ours))):
                shape = [ours[axis] for axis in order]
                back = index.reshape(shape).transpose(np.argsort(order))
                yield Layout(back, f"reshaped, {_words(tuple(int(axis) for axis in np.argsort(order)))}")


def _words(order: tuple[int, ...]) -> str:
    return "transposed" if order == (1, 0) else f"axes {' '.join(map(str, order))}"


def of_blocks(ours: tuple[int, ...], theirs: tuple[int, ...]) -> Iterator[Layout]:
    """The layouts of matrices and vectors whose blocks along an axis have another order, as gates have."""
    if len(ours) > 2 or sorted(ours) != sorted(theirs):
        return
    for base in of_axes(ours, theirs):
        for axis, size in enumerate(ours):
            for count in (count for count in BLOCKS if size % count == 0 and size > count):
                parts = np.split(base.take, count, axis)
                for order in permutations(range(count)):
                    if order != tuple(range(count)):
                        take = np.concatenate([parts[place] for place in order], axis)
                        words = f"blocks {' '.join(map(str, order))} of axis {axis}"
                        yield Layout(take, f"{base.words}, {words}" if base.words else words, order)


def by_values(ours: np.ndarray, theirs: np.ndarray) -> Layout | None:
    """The layout by which two arrays hold equal values; None where they do not hold the same ones.

    Where no permutation of axes and no order of blocks does, the elements are matched by their values alone.
    """
    if ours.size != theirs.size or not np.array_equal(ordered(ours), ordered(theirs)):
        return None
    flat = theirs.reshape(-1)
    for candidates in (of_axes(ours.shape, theirs.shape), of_blocks(ours.shape, theirs.shape)):
        for layout in candidates:
            if np.array_equal(ours, flat[layout.take], equal_nan=True):
                return layout
    return Layout(_matched(ours.reshape(-1), flat).reshape(ours.shape), "in another order")


def joined(ours: list[np.ndarray], theirs: list[np.ndarray]) -> np.ndarray | None:
    """Where each element of some arrays, one after another, lies in others; None where they hold other values."""
    a, b = (np.concatenate([array.reshape(-1) for array in many]) for many in (ours, theirs))
    return _matched(a, b) if a.size == b.size and np.array_equal(ordered(a), ordered(b)) else None


def _matched(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Indices into b, in the order of a, of equal elements; equal ones keep their order."""
    take = np.empty(a.size, np.int64)
    take[np.argsort(a, kind="stable")] = np.argsort(b, kind="stable")
    return take


def ordered(array: np.ndarray) -> np.ndarray:
    """The values of an array, sorted: float32, of which -0 is 0."""
    return np.sort(np.asarray(array, np.float32).reshape(-1) + np.float32(0))
