"""What an element of a result depends on: all else is changed, and its bits must stay.

An operation is a function of an array [samples, rows, numbers]. Its result has these axes, too, or some of size 1.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

SHAPE = 4, 5, 6
S, R, N = PLACE = 1, 2, 3
"""The element that is looked at."""
ALL, SAMPLE, ROW, NUMBER = slice(0, None), slice(S, S + 1), slice(R, R + 1), slice(N, N + 1)
Index = tuple[slice, slice, slice]
ITSELF, ROW_SO_FAR, ITS_ROW, ITS_COLUMN = "itself", "its row up to it", "its row", "its column"
NEAR, ROWS_SO_FAR, ITS_SAMPLE, CALL = "the rows beside it", "the rows up to it", "its sample", "the call"
SCOPES: dict[str, tuple[Index, Index]] = {
    ITSELF: ((SAMPLE, ROW, NUMBER), (SAMPLE, ROW, NUMBER)),
    ROW_SO_FAR: ((SAMPLE, ROW, slice(0, N + 1)), (SAMPLE, ROW, NUMBER)),
    ITS_ROW: ((SAMPLE, ROW, ALL), (SAMPLE, ROW, ALL)),
    ITS_COLUMN: ((SAMPLE, ALL, NUMBER), (SAMPLE, ALL, NUMBER)),
    NEAR: ((SAMPLE, slice(R - 1, R + 2), ALL), (SAMPLE, ROW, ALL)),
    ROWS_SO_FAR: ((SAMPLE, slice(0, R + 1), ALL), (SAMPLE, ROW, ALL)),
    ITS_SAMPLE: ((SAMPLE, ALL, ALL), (SAMPLE, ALL, ALL)),
}
"""What may matter, from the smallest on, and of which part of the result; the call is what is left."""
DRAWS = 4
Compute = Callable[..., np.ndarray]


@dataclass(frozen=True)
class Case:
    """An operation, what its formula depends on, and whether it takes arrays of other sizes and has a gradient."""

    function: Callable[[Any], Any]
    formula: str
    any_shape: bool = True
    gradient: bool = True
    numbers: bool = False
    """True if it multiplies other elements by 0: NaN among them stay NaN in any arithmetic."""


Cases = dict[str, Case]


def report(cases: Cases, forward: Callable[..., np.ndarray], backward: Callable[..., np.ndarray]) -> dict[str, Any]:
    """By operation what its formula, its result and its gradient depend on; the last is None where there is none.

    `forward(function, x)` and `backward(function, x, gradient)` compute arrays in a framework.
    """
    done = {}
    for name, case in cases.items():
        result = dependence(lambda x, case=case: forward(case.function, x), case)
        gradient = None
        if case.gradient:
            shape = forward(case.function, drawn(0, SHAPE)).shape
            gradient = dependence(lambda *given, case=case: backward(case.function, *given), case, shape)
        done[name] = [case.formula, result, gradient]
    return done


def dependence(compute: Compute, case: Case, *shapes: tuple[int, ...]) -> str:
    """The smallest scope outside of which no change matters; `shapes` of arrays that are given besides the numbers."""
    draws = [[drawn(draw + 10 * place, shape) for place, shape in enumerate((SHAPE, *shapes))] for draw in range(DRAWS)]
    results = [compute(*arrays) for arrays in draws]
    for name, (inside, part) in SCOPES.items():
        if all(
            same(taken(result, part), taken(compute(*changed), moved))
            for arrays, result in zip(draws, results, strict=True)
            for changed, moved in changes(arrays, inside, part, case)
        ):
            return name
    return CALL


def drawn(seed: int, shape: Sequence[int]) -> np.ndarray:
    """float32 numbers, whose magnitudes differ by sample and row."""
    random = np.random.Generator(np.random.Philox(key=[11, seed]))
    scale = 2.0 ** random.integers(-2, 3, (*shape[:2], 1))
    return (random.uniform(-1, 1, shape) * scale).astype(np.float32)


def fitted(index: Index, shape: Sequence[int]) -> Index:
    """An index of the numbers as one of an array in which some axes have size 1."""
    return tuple(ALL if size == 1 else each for each, size in zip(index, shape, strict=True))  # type: ignore[return-value]


def taken(result: np.ndarray, part: Index) -> np.ndarray:
    part_of_result = result[fitted(part, result.shape)]
    assert part_of_result.size, f"a result {list(result.shape)} has nothing at {part}"
    return part_of_result


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and bool(((a == b) | (a != a) & (b != b)).all())


def changes(arrays: list[np.ndarray], inside: Index, part: Index, case: Case) -> Iterator[tuple[Any, Index]]:
    """The arrays with other numbers outside, then more or fewer of them; and where the part of the result is then."""
    for change in (scaled, permuted, far) if case.numbers else (scaled, permuted, far, not_numbers):
        yield [outside(x, inside, change) for x in arrays], part
    axes = [axis for axis, each in enumerate(inside) if each != ALL] if case.any_shape else []
    for cut in ([axis] for axis in axes):
        yield [only(x, inside, cut) for x in arrays], within(part, inside, cut)
        for value in (1e6,) if case.numbers else (1e6, np.nan):
            yield [longer(x, cut[0], value) for x in arrays], part
    if axes:
        yield [only(x, inside, axes) for x in arrays], within(part, inside, axes)


def outside(x: np.ndarray, inside: Index, change: Callable[[np.ndarray], Any]) -> np.ndarray:
    kept = np.zeros(x.shape, bool)
    kept[fitted(inside, x.shape)] = True
    result = x.copy()
    result[~kept] = change(x[~kept])
    return result


def scaled(x: np.ndarray) -> np.ndarray:
    return x * np.float32(37)


def permuted(x: np.ndarray) -> np.ndarray:
    return np.roll(x, 7)


def far(x: np.ndarray) -> np.ndarray:
    return np.full_like(x, 1e6)


def not_numbers(x: np.ndarray) -> np.ndarray:
    return np.full_like(x, np.nan)


def only(x: np.ndarray, inside: Index, axes: Sequence[int]) -> np.ndarray:
    """What is inside, along some axes."""
    index: Any = tuple(each if axis in axes else ALL for axis, each in enumerate(inside))
    return x[fitted(index, x.shape)]


def within(part: Index, inside: Index, axes: Sequence[int]) -> Index:
    """The part, where along some axes only what is inside is left."""
    moved = [
        slice(each.start - limit.start, each.stop - limit.start) if axis in axes and each.stop else each
        for axis, (each, limit) in enumerate(zip(part, inside, strict=True))
    ]
    return tuple(moved)  # type: ignore[return-value]


def longer(x: np.ndarray, axis: int, value: float) -> np.ndarray:
    """With three more of this value at the end of an axis."""
    edges = [(0, 3 if each == axis and size > 1 else 0) for each, size in enumerate(x.shape)]
    return np.pad(x, edges, constant_values=np.float32(value))


def constant(name: int, *shape: int) -> np.ndarray:
    """float32 numbers of an operation's other arrays."""
    random = np.random.Generator(np.random.Philox(key=[13, name]))
    return random.uniform(-1, 1, shape).astype(np.float32)
