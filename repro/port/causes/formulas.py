"""Formulas that one side or the other may compute: each side's result must follow from its own one."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from repro.port.causes.case import FORWARD, Case
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


_erf = np.vectorize(math.erf, otypes=[np.float64])


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 0.5 * (1 + np.tanh(x / 2))


FUNCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "gelu by erf": lambda x: x * 0.5 * (1 + _erf(x / math.sqrt(2))),
    "gelu by tanh": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "gelu by the sigmoid of 1.702 x": lambda x: x * _sigmoid(1.702 * x),
    "no function": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "relu up to 6": lambda x: np.clip(x, 0, 6),
    "leaky relu of 0.01": lambda x: np.where(x > 0, x, 0.01 * x),
    "leaky relu of 0.1": lambda x: np.where(x > 0, x, 0.1 * x),
    "leaky relu of 0.2": lambda x: np.where(x > 0, x, 0.2 * x),
    "leaky relu of 0.3": lambda x: np.where(x > 0, x, 0.3 * x),
    "silu": lambda x: x * _sigmoid(x),
    "hard silu": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "sigmoid": _sigmoid,
    "hard sigmoid of x / 6": lambda x: np.clip(x / 6 + 0.5, 0, 1),
    "hard sigmoid of x / 5": lambda x: np.clip(x / 5 + 0.5, 0, 1),
    "tanh": np.tanh,
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0))),
    "softplus": lambda x: np.logaddexp(x, 0),
    "mish": lambda x: x * np.tanh(np.logaddexp(x, 0)),
}
"""Functions of single numbers, in float64; sources: the documentation of `torch.nn.functional`, `jax.nn` and `keras.activations`."""

BETWEEN = ("relu", "gelu by erf", "gelu by tanh", "silu", "tanh")
"""Functions that often stand before what differs, with no module of their own."""


def sources(case: Case) -> Iterator[tuple[str, np.ndarray]]:
    """Arrays that agree before the place, and then usual functions of them: what was done, in words, and float64."""
    arrays = agreed(case)
    yield from (("", x) for x in arrays)
    yield from ((f", after {name},", FUNCTIONS[name](x)) for name in BETWEEN for x in arrays[:4])
