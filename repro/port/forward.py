"""Forward passes side by side: the first place whose inputs agree and whose results do not."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from repro.port.agreement import Apart, Noise, allowed, nearest, same_samples
from repro.port.call_pairs import CallPairs, first
from repro.port.functions import BETWEEN, FUNCTIONS
from repro.port.matching import Matching
from repro.port.side import Called, Side


@dataclass(frozen=True)
class Layer:
    """A module of A, and the one of B with the same weights."""

    a: Called
    b: Called
    inputs: Apart | None
    """How far apart what both are called with is; None where the shapes are not comparable."""
    outputs: Apart | None
    reordered: bool = False
    """True if each sample of the input has the same values in another order."""
    activated: tuple[np.ndarray, np.ndarray] | None = None
    """Results that agree, where one side's layer holds its activation, and the other side's has it after the layer."""

    @property
    def inputs_agree(self) -> bool:
        return self.reordered or (self.inputs is not None and self.inputs.agrees)

    @property
    def outputs_agree(self) -> bool:
        return self.outputs is not None and self.outputs.agrees


@dataclass
class Place:
    """The place in the forward pass where two sides part: what is known to agree, and what comes of it."""

    within: Layer | None
    """The layer whose inputs agree and whose results do not; None where that happens between layers."""
    before: Layer | None
    """The last layer whose results agree, if it is between two."""
    after: Layer | None
    """The first layer whose inputs do not agree; None at the end of the model."""
    targets: tuple[np.ndarray, np.ndarray]
    """What does not agree: of A, and of B in A's layout as far as the shapes are comparable."""
    apart: Apart | None
    agreed: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    """Arrays that agree before it, the latest first: of A, and of B in A's layout."""
    passed: tuple[list[Called], list[Called]] = ((), ())  # type: ignore[assignment]
    """The calls of modules between, of both sides, such as activations."""
    around: Called | None = None
    """The innermost module of A that holds the layers before and after, below the model itself."""

    @property
    def words(self) -> str:
        if self.within:
            return f"{self.within.a.label} of A, {self.within.b.label} of B"
        start = f"after {self.before.a.name} of A, {self.before.b.name} of B" if self.before else "at the beginning"
        end = f"before {self.after.a.name}, {self.after.b.name}" if self.after else "at the end of the model"
        between = [
            f"{call.label} of {letter}" for letter, calls in zip("AB", self.passed, strict=True) for call in calls
        ]
        inside = f"in {self.around.label}, " if self.around else ""
        return f"{inside}{start}, {end}" + (f"; between: {', '.join(between[:4])}" if between else "")

    @property
    def module(self) -> str:
        """The module of A that is named in one word."""
        layer = self.within or self.after or self.before
        return layer.a.name if layer else ""


class Forward:
    """The forward passes of two sides."""

    def __init__(self, a: Side, b: Side, matching: Matching, noise: tuple[Noise, Noise]):
        self.sides, self.noise = (a, b), noise
        self.layers = [self.layer(*both) for both in CallPairs(a, b, matching).pairs()]

    def allowed(self, a: Called, b: Called) -> float:
        return allowed(self.noise[0].at(a), self.noise[1].at(b))

    def layer(self, a: Called, b: Called) -> Layer:
        limit = self.allowed(a, b)
        inputs = _nearest([*a.inputs.values()], [*b.inputs.values()], limit)
        reordered = False
        if inputs is None or not inputs.agrees:
            reordered = any(
                same_samples(x, y, limit) for x in _floats(a.inputs.values()) for y in _floats(b.inputs.values())
            )
        outputs = _nearest([*a.outputs.values()], [*b.outputs.values()], limit)
        activated: tuple[np.ndarray, np.ndarray] | None = None
        if outputs is None or not outputs.agrees:
            agreeing = _activated(first(a.outputs), first(b.outputs), limit)
            outputs, activated = (agreeing[0], agreeing[1:]) if agreeing else (outputs, None)
        return Layer(a, b, inputs, outputs, reordered, activated)

    def ends(self) -> tuple[Apart, np.ndarray, np.ndarray] | None:
        """How far apart the results of the whole models are; None where their shapes are not comparable."""
        best = None
        limit = allowed(self.noise[0].forward, self.noise[1].forward)
        for x in _last(self.sides[0]):
            for y in _last(self.sides[1]):
                both = nearest(x, y, limit)
                if both and (best is None or both[0].distance < best[0].distance):
                    best = both[0], x, both[1]
        return best

    def place(self) -> Place | None:
        """The first place where the sides part; None if the results of the models agree."""
        ends = self.ends()
        agree = ends is not None and ends[0].agrees
        for number, layer in enumerate(self.layers):
            if layer.inputs is None and any(later.inputs_agree for later in self.layers[number + 1 :]):
                continue  # of another shape, as a cell of one step beside a layer of all steps
            if not layer.inputs_agree and not (agree and _is_near(layer.inputs)):
                return self._between(number)
            if not agree and not layer.outputs_agree and not self._recovers(number):
                return self._within(layer, number)
        return self._between(len(self.layers)) if self.layers and not agree else None

    def _recovers(self, number: int) -> bool:
        """True if what comes next agrees again, as where one side's layer holds the activation, too."""
        later = self.layers[number + 1 : number + 2]
        return bool(later) and later[0].inputs_agree and not _feeds_on_input(self.layers[number], later[0])

    def _within(self, layer: Layer, number: int) -> Place:
        targets = _closest_pair([*layer.a.outputs.values()], [*layer.b.outputs.values()])
        inputs = [
            _in_layout(x, y)
            for x, y in zip(_floats(layer.a.inputs.values()), _floats(layer.b.inputs.values()), strict=False)
        ]
        return Place(layer, None, None, targets, layer.outputs, inputs + self._agreed(number))

    def _between(self, number: int) -> Place:
        after = self.layers[number] if number < len(self.layers) else None
        before = self.layers[number - 1] if number else None
        last = [call.number for call in (before.a, before.b)] if before else [0, 0]
        ends = [after.a.number, after.b.number] if after else [10**9, 10**9]
        passed = tuple(
            [call for call in side.calls if low < call.number < high and not call.weights]
            for side, low, high in zip(self.sides, last, ends, strict=True)
        )
        part = self._part(passed[0], passed[1])
        if part:
            agreed = self._agreed(number)
            return Place(
                part,
                None,
                None,
                _closest_pair([*part.a.outputs.values()], [*part.b.outputs.values()]),
                part.outputs,
                agreed,
            )
        if after:
            targets, distance = _closest_pair([*after.a.inputs.values()], [*after.b.inputs.values()]), after.inputs
        else:
            both = self.ends()
            targets = (both[1], both[2]) if both else (_last(self.sides[0])[0], _last(self.sides[1])[0])
            distance = both[0] if both else None
        agreed = self._agreed(number)
        around = self._around(before, after) if before and after else None
        return Place(None, before, after, targets, distance, agreed, (passed[0], passed[1]), around)

    def _around(self, before: Layer, after: Layer) -> Called | None:
        holding = [call for call in self.sides[0].calls if call.name and call.holds(before.a) and call.holds(after.a)]
        return max(holding, key=lambda call: len(call.name), default=None)

    def _part(self, ours: list[Called], theirs: list[Called]) -> Layer | None:
        """The first of the modules without weights whose inputs agree, and whose results, of one size, do not."""
        rest = theirs
        for a in ours:
            size = max((array.size for array in a.outputs.values()), default=0)
            if any(a.holds(call) for call in self.sides[0].calls):
                continue
            alike = [b for b in rest if size and size in {array.size for array in b.outputs.values()}]
            layers = [layer for b in alike if (layer := self.layer(a, b)).inputs_agree]
            if layers and not any(layer.outputs_agree for layer in layers):
                return layers[0]
            rest = [call for call in rest if not layers or call.number > layers[0].b.number]
        return None

    def _agreed(self, number: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Results and inputs of earlier layers that agree, the latest first; a layer's own result before its input."""
        pairs = []
        for layer in reversed(self.layers[:number]):
            for agree, ours, theirs in (
                (layer.outputs_agree, layer.a.outputs, layer.b.outputs),
                (layer.inputs_agree, layer.a.inputs, layer.b.inputs),
            ):
                if agree and ours is layer.a.outputs and layer.activated:
                    pairs.append(layer.activated)
                if agree:
                    pairs.append(_closest_pair([*ours.values()], [*theirs.values()]))
        return pairs


def _activated(x: np.ndarray | None, y: np.ndarray | None, limit: float) -> tuple[Apart, np.ndarray, np.ndarray] | None:
    """Two results that agree once a usual function was applied to one of them; None where they do not."""
    if x is None or y is None or x.size != y.size or {x.dtype.kind, y.dtype.kind} != {"f"}:
        return None
    for name in BETWEEN:
        function = FUNCTIONS[name]
        for ours, theirs in ((function(np.asarray(x, np.float64)), y), (x, function(np.asarray(y, np.float64)))):
            both = nearest(ours, theirs, limit)
            if both and both[0].agrees:
                return both[0], ours, both[1]
    return None


def _is_near(apart: Apart | None) -> bool:
    """True if a distance is beyond what rounding explains, and not far: where the results agree, it is noise."""
    return apart is None or apart.distance <= 8 * apart.bound


def _feeds_on_input(layer: Layer, later: Layer) -> bool:
    """True if the later layer is called with what the layer is called with, so that it says nothing of its result."""
    return any(
        x.shape == y.shape and np.array_equal(x, y) for x in layer.a.inputs.values() for y in later.a.inputs.values()
    )


def _floats(arrays: Iterable[np.ndarray]) -> list[np.ndarray]:
    return [array for array in arrays if np.issubdtype(array.dtype, np.floating) or array.dtype.kind in "iu"]


def _nearest(ours: list[np.ndarray], theirs: list[np.ndarray], limit: float) -> Apart | None:
    """How far apart the nearest arrays of two calls are."""
    distances = [both[0] for x in ours for y in theirs if (both := nearest(x, y, limit))]
    return min(distances, key=lambda one: one.distance, default=None)


def _closest_pair(ours: list[np.ndarray], theirs: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    best = None
    for x in ours:
        for y in theirs:
            both = nearest(x, y, 0.0)
            if both and (best is None or both[0].distance < best[0]):
                best = both[0].distance, x, both[1]
    return (best[1], best[2]) if best else (ours[0], theirs[0])


def _in_layout(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    both = nearest(x, y, 0.0)
    return x, both[1] if both else y


def _last(side: Side) -> list[np.ndarray]:
    """The results of the model: those of its outermost call, or of the last one where no call holds all others."""
    roots = [call for call in side.calls if all(call is other or call.holds(other) for other in side.calls)]
    calls = roots or side.calls[-1:]
    return [array for call in calls for array in call.outputs.values() if np.issubdtype(array.dtype, np.floating)]
