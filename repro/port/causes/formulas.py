"""Formulas that one side or the other may compute: each side's result must follow from its own one."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from repro.port.causes.case import FORWARD, Case
from repro.port.functions import BETWEEN, FUNCTIONS
from repro.port.side import Arrays, Called

Formula = tuple[str, np.ndarray]
"""A formula in words, and its result in float64: images with channels last."""

NEAREST = 1e-4
"""The largest relative distance at which a result follows from a formula."""
BETTER = 6
"""How many times nearer a result must be to its formula than to the other side's result."""


def results(case: Case) -> tuple[np.ndarray, np.ndarray] | None:
    """What does not agree, as each side has it; None where the forward passes agree."""
    place = case.place
    if case.quantity != FORWARD or place is None:
        return None
    if place.within:
        return _largest(place.within.a.outputs), _largest(place.within.b.outputs)
    if place.after:
        return _likest(place.after.a.inputs, place.after.b.inputs)
    return place.targets


def _largest(arrays: Arrays) -> np.ndarray:
    return max(arrays.values(), key=lambda array: array.size)


def _likest(ours: Arrays, theirs: Arrays) -> tuple[np.ndarray, np.ndarray]:
    """The first floats of one size."""
    floats = [[array for array in of.values() if array.dtype.kind == "f"] for of in (ours, theirs)]
    both = [(a, b) for a in floats[0] for b in floats[1] if a.size == b.size]
    return both[0] if both else (_largest(ours), _largest(theirs))


def sizes(case: Case) -> set[int]:
    """How many numbers the results have for each sample."""
    return {array.size // len(array) for array in results(case) or () if array.ndim and len(array)}


def agreed(case: Case) -> list[np.ndarray]:
    """Arrays that agree before the place, as A has them, the latest first: float64."""
    arrays = [] if case.place is None else [a for a, _ in case.place.agreed if a.dtype.kind == "f"]
    return [np.asarray(array, np.float64) for array in arrays]


def last_channels(case: Case, array: np.ndarray) -> np.ndarray:
    """An array of A with the channels last: PyTorch's images have them second."""
    return np.moveaxis(array, 1, -1) if array.ndim > 2 and case.sides[0].framework.startswith("PyTorch") else array


def told_apart(case: Case, formulas: Iterable[Formula]) -> tuple[str, str] | None:
    """The formulas of A and of B, in words, if each side's result follows from one that the other's does not follow from."""
    both = results(case)
    if both is None:
        return None
    distance = case.place.apart.relative if case.place and case.place.apart else 1.0
    limit = min(NEAREST, distance / BETTER) if np.isfinite(distance) else NEAREST
    fitting: list[list[str]] = [[], []]
    for words, made in formulas:
        for side, result in enumerate(both):
            if follows(result, made, limit):
                fitting[side].append(words)
    if not fitting[0] or not fitting[1] or {*fitting[0]} & {*fitting[1]}:
        return None
    return fitting[0][0], fitting[1][0]


def follows(result: np.ndarray, made: np.ndarray, limit: float) -> bool:
    """True if a result is what a formula makes, in either order of the axes of images; a formula may make the first samples only."""
    if result.ndim and made.ndim and len(made) < len(result) and result.size % len(result) == 0:
        result = result[: len(made)]
    if result.size != made.size:
        return False
    orders = [made, np.moveaxis(made, -1, 1)] if made.ndim > 2 else [made]
    values = np.asarray(result, np.float64).reshape(-1)
    scale = float(np.linalg.norm(values))
    return any(float(np.linalg.norm(values - order.reshape(-1))) <= limit * scale for order in orders)


def own(case: Case, call: Called, side: int = 0) -> Arrays:
    """The weights of a call by its own names: float64."""
    weights = case.sides[side].weights
    return {local: np.asarray(weights[name], np.float64) for local, name in call.weights.items()}


def passed(case: Case) -> list[Called]:
    """The calls at the place, of both sides: the layer itself, or the modules between two."""
    place = case.place
    if place is None:
        return []
    return [place.within.a, place.within.b] if place.within else [*place.passed[0], *place.passed[1]]


def numbers(calls: Sequence[Called], *names: str) -> list[float]:
    """Numbers among the settings of calls, by the names that libraries give them."""
    found = []
    for call in calls:
        for name in names:
            try:
                found.append(float(call.settings[name]))
            except (KeyError, ValueError):
                continue
    return [*dict.fromkeys(found)]


def sources(case: Case) -> Iterator[tuple[str, np.ndarray]]:
    """Arrays that agree before the place, and then usual functions of them: what was done, in words, and float64."""
    arrays = agreed(case)
    yield from (("", x) for x in arrays)
    yield from ((f", after {name},", FUNCTIONS[name](x)) for name in BETWEEN for x in arrays[:4])
