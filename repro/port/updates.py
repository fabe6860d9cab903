"""What an optimizer made of gradients in the first step, read from the arrays of one side.

The first step of an optimizer is simple: its states were zero. So a state is a multiple of the gradient, or of its
square, and the change of the weights is one of a few forms. Their coefficients follow by least squares, in float64:
those of `torch.optim`, Optax and Keras are all among them.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from repro.port.side import Side

CLOSE = 1e-3
"""The relative residual up to which a form explains an array: float32 weights round their changes to some 1e-4 of them."""
FEWEST = 4
"""Elements that a fit needs."""


@dataclass(frozen=True)
class State:
    """A state of the optimizer of one weight, after the first step."""

    name: str
    kind: str
    """average: of gradients; squares: of their squares; other."""
    factor: float = 0.0
    """The coefficient of the gradient, or of its square."""
    decay: float = 0.0
    """That of the weight beside it: more than 0 where the decay of weights is a part of the gradient."""


@dataclass(frozen=True)
class Change:
    """The change of one weight in the first step: -(rate * h / d + decay * w), h the gradient with its part of the weight.

    d is 1 (linear), |h| + epsilon (adaptive), or the root of h**2 + epsilon**2 (inside).
    """

    form: str
    """linear | adaptive | inside | clipped | none | other"""
    rate: float = 0.0
    epsilon: float = 0.0
    decay: float = 0.0
    limit: float = 0.0
    """The magnitude at which a gradient is cut off, if single elements are."""


@dataclass
class Update:
    """The first step of one weight."""

    name: str
    before: np.ndarray
    gradient: np.ndarray
    after: np.ndarray
    slots: dict[str, np.ndarray] = field(default_factory=dict)

    @cached_property
    def change(self) -> np.ndarray:
        return self.after - self.before

    @cached_property
    def states(self) -> list[State]:
        return [_state(name, array, self.gradient, self.before) for name, array in self.slots.items()]

    def state(self, kind: str) -> State | None:
        return next((state for state in self.states if state.kind == kind), None)

    @cached_property
    def coupled(self) -> float:
        """The decay of weights that is a part of the gradient, as the average of gradients shows it."""
        average = self.state("average")
        return average.decay / average.factor if average and average.factor else 0.0

    @cached_property
    def form(self) -> Change:
        return _change(self.change, self.gradient + self.coupled * self.before, self.before)


def updates(side: Side) -> dict[str, Update]:
    """The first step of each weight whose gradient and later value are known; arrays in float64, flat."""
    after, slots = side.of("weights"), side.of("optimizer")
    result = {}
    for name, before in side.weights.items():
        if name not in after or name not in side.gradients or before.dtype.kind != "f":
            continue
        own = {slot: array for slot, array in slots.items() if array.size == before.size and _is_of(slot, name, side)}
        flat = [np.asarray(array, np.float64).reshape(-1) for array in (before, side.gradients[name], after[name])]
        if flat[1].size == flat[0].size:
            states = {slot: np.asarray(array, np.float64).reshape(-1) for slot, array in own.items()}
            result[name] = Update(name, flat[0], flat[1], flat[2], states)
    return result


def _is_of(slot: str, weight: str, side: Side) -> bool:
    """True if a state's name is that of a weight with something before or after it, and of no longer name."""
    plain_slot, plain = _plain(slot), _plain(weight)
    if plain not in plain_slot:
        return False
    return not any(len(other) > len(weight) and _plain(other) in plain_slot for other in side.weights)


def _plain(name: str) -> str:
    """A name without the number of its optimizer, and with one separator."""
    head, dot, rest = name.partition(".")
    plain = rest if dot and head.isdecimal() else name
    return plain.replace("/", ".").replace("_", ".")


def _fit(target: np.ndarray, *columns: np.ndarray) -> tuple[np.ndarray, float]:
    """Coefficients of the columns by least squares, and the relative residual."""
    matrix = np.stack(columns, 1)
    sizes = np.linalg.norm(matrix, axis=0)
    sizes[sizes == 0] = 1
    solution = np.linalg.lstsq(matrix / sizes, target, rcond=None)[0] / sizes
    size = float(np.linalg.norm(target))
    return solution, float(np.linalg.norm(matrix @ solution - target)) / size if size else 0.0


def _state(name: str, state: np.ndarray, g: np.ndarray, w: np.ndarray) -> State:
    if not g.any() or not state.any() or g.size < FEWEST:
        return State(name, "other")
    (factor,), rest = _fit(state, g)
    if rest < CLOSE / 100:
        return State(name, "average", float(factor))
    if w.any():
        (factor, decay), rest = _fit(state, g, w)
        if rest < CLOSE / 100:
            return State(name, "average", float(factor), float(decay))
    (factor,), rest = _fit(state, g**2)
    if rest < CLOSE / 100:
        return State(name, "squares", float(factor))
    (square, mixed, last), rest = _fit(state, g**2, g * w, w**2)
    if (
        rest < CLOSE / 100
        and square > 0
        and abs(mixed**2 - 4 * square * last) <= CLOSE * max(mixed**2, 4 * square * abs(last))
    ):
        return State(name, "squares", float(square), float(mixed / 2))
    return State(name, "other")


def _change(change: np.ndarray, h: np.ndarray, w: np.ndarray) -> Change:
    if not change.any():
        return Change("none")
    if h.size < FEWEST or not h.any():
        return Change("other")
    keep = np.abs(change) > CLOSE * np.abs(change).max()
    columns = [h, w] if w.any() else [h]
    solution, rest = _fit(change, *columns)
    if rest < CLOSE:
        decay = -float(solution[1]) if len(columns) > 1 else 0.0
        return Change("linear", -float(solution[0]), decay=decay)
    candidates = []
    size = np.abs(h)
    columns = [-change, -h] + ([-w * size, -w] if w.any() and np.unique(w).size > 1 else [])
    solution, rest = _fit((change * size)[keep], *(column[keep] for column in columns))
    decay = float(solution[2]) if len(columns) > 2 else 0.0
    epsilon, rate = float(solution[0]), float(solution[1])
    made = -(rate * h / (size + max(epsilon, 1e-300)) + decay * w)
    candidates.append((_rest(made, change), Change("adaptive", rate, max(epsilon, 0.0), decay)))
    solution, rest = _fit((change**2 * h**2)[keep], *(column[keep] for column in (-(change**2), h**2)))
    inner, square = float(solution[0]), float(solution[1])
    if square > 0 and inner > 0:
        made = -np.sqrt(square) * h / np.sqrt(h**2 + inner)
        candidates.append((_rest(made, change), Change("inside", float(np.sqrt(square)), float(np.sqrt(inner)))))
    largest = float(np.abs(change).max())
    cut = np.abs(change) >= largest * (1 - CLOSE)
    below = ~cut & keep
    if below.sum() >= FEWEST and cut.sum() > 1:
        (rate,), _ = _fit(change[below], h[below])
        limit = largest / -float(rate) if rate else 0.0
        made = float(rate) * np.clip(h, -limit, limit)
        candidates.append((_rest(made, change), Change("clipped", -float(rate), limit=limit)))
    rest, best = min(candidates, key=lambda one: one[0])
    return best if rest < CLOSE else Change("other")


def _rest(made: np.ndarray, change: np.ndarray) -> float:
    return float(np.linalg.norm(made - change) / np.linalg.norm(change))
