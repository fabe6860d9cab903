"""Quantities of the first step, one after another, in the order in which one follows from another."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from repro.port import agreement
from repro.port.agreement import MARGIN, ROUNDING, Apart, Noise, allowed, apart, nearest
from repro.port.causes.case import BATCH, BUFFERS, FORWARD, GRADIENTS, INITIAL, LOSS, OPTIMIZER, WEIGHTS, Case
from repro.port.forward import Forward
from repro.port.matching import Match, Matching
from repro.port.side import Arrays, Side, outermost
from repro.port.updates import Update, updates
from repro.text import counted

Verdict = Literal["same bits", "agrees", "differs", "unknown"]


@dataclass
class Quantity:
    """A quantity of the first step, and how far both sides agree in it."""

    name: str
    verdict: Verdict
    text: str
    names: list[str] = field(default_factory=list)
    """What differs, by A's names, the first first."""
    apart: dict[str, Apart] = field(default_factory=dict)
    """How far apart each part is, by A's names."""


def of_distances(name: str, distances: dict[str, Apart], nothing: str) -> Quantity:
    """A quantity whose parts were compared one by one; `nothing`: what is said where there are none."""
    if not distances:
        return Quantity(name, "unknown", nothing)
    names = [part for part, one in distances.items() if not one.agrees]
    if names:
        text = f"{len(names)} of {counted(len(distances), 'array')} differ, the first is `{names[0]}`: {distances[names[0]]}"
        return Quantity(name, "differs", text, names, distances)
    far = max(distances.values(), key=lambda one: one.relative)
    same = sum(one.same for one in distances.values())
    if same == len(distances):
        return Quantity(name, "same bits", counted(same, "array"), apart=distances)
    text = f"{counted(len(distances), 'array')}, {same} with the same bits; at most {far}"
    return Quantity(name, "agrees", text, apart=distances)


class Checks:
    """The quantities of two sides whose weights were matched; each fills in what a cause needs to know of it."""

    def __init__(self, a: Side, b: Side, matching: Matching):
        self.a, self.b, self.matching = a, b, matching
        self.noise = Noise(a), Noise(b)
        self.forward = Forward(a, b, matching, self.noise)
        self.case = Case("", (a, b), matching, forward=self.forward, inputs=(_given(a), _given(b)))

    def all(self) -> Iterable[Quantity]:
        yield self.batch()
        yield self.initial()
        yield self.forward_pass()
        yield self.loss()
        yield self.gradients()
        self.case.steps = self.first_steps()
        yield self.optimizer()
        yield self.weights()
        yield self.buffers()

    def batch(self) -> Quantity:
        """What the models are called with, and what else the step was given."""
        ours, theirs = list(self.case.inputs[0]), list(self.case.inputs[1])
        limit = allowed(ROUNDING, ROUNDING)
        distances: dict[str, Apart] = {}
        for x in list(ours):
            for y in theirs:
                both = _of_batch(x, y, limit)
                if both and both[0].agrees:
                    distances[f"part {len(distances) + 1}"] = both[0]
                    ours = [other for other in ours if other is not x]
                    theirs = [other for other in theirs if other is not y]
                    break
        for x in ours:
            other = next((y for y in theirs if y.size == x.size and y.dtype.kind == x.dtype.kind), None)
            other = other if other is not None else next((y for y in theirs if y.size == x.size), None)
            both = None if other is None else _of_batch(x, other, limit)
            if both and other is not None:
                theirs = [one for one in theirs if one is not other]
                distances[f"part {len(distances) + 1} {x.shape}"] = both[0]
                self.case.batch.append((x, other if other.shape == x.shape else both[1]))
        first = [next(iter(given), None) for given in self.case.inputs]
        if not distances and first[0] is not None and first[1] is not None:
            self.case.batch.append((first[0], first[1]))
            shapes = f"the model is called with {first[0].shape} in A, {first[1].shape} in B"
            return Quantity(BATCH, "differs", shapes, ["part 1"])
        return of_distances(BATCH, distances, "not seen on both sides")

    def initial(self) -> Quantity:
        if not self.a.initial or not self.b.initial:
            return Quantity(INITIAL, "unknown", "not held by both sides")
        return of_distances(INITIAL, self.direct(self.a.initial, self.b.initial, 0.0), "no weight was matched")

    def direct(self, ours: Arrays, theirs: Arrays, relative: float) -> dict[str, Apart]:
        """How far apart weights are that belong together, without regard to what they were made of."""
        distances = {}
        for match in self.matching.matches:
            both = match.arrays(ours, theirs)
            if both:
                own = ours[match.a[0]] + ours[match.a[1]] if match.summed else both[0]
                distances[match.names[0]] = apart(own, both[1].reshape(own.shape), relative)
        return distances

    def forward_pass(self) -> Quantity:
        if not self.a.calls or not self.b.calls:
            side = self.a if not self.a.calls else self.b
            return Quantity(FORWARD, "unknown", f"{side.letter} holds no calls of modules: record it with --modules 1")
        place = self.case.place = self.forward.place()
        distances = {
            f"{layer.a.name} -> {layer.b.name}": layer.outputs for layer in self.forward.layers if layer.outputs
        }
        ends = self.forward.ends()
        if ends:
            self.case.logits = ends[1], ends[2]
        if place is None and ends:
            same = [layer for layer in self.forward.layers if layer.outputs and layer.outputs.same]
            text = f"{counted(len(self.forward.layers), 'layer')}, {len(same)} with the same bits; the models' results are {ends[0]}"
            return Quantity(FORWARD, "same bits" if ends[0].same else "agrees", text, apart=distances)
        if place is None:
            return Quantity(FORWARD, "unknown", "no layer of A belongs to one of B by its weights")
        return Quantity(
            FORWARD, "differs", f"{place.words}: {place.apart or 'other shapes'}", [place.module], distances
        )

    def loss(self) -> Quantity:
        if not self.a.losses or not self.b.losses:
            side = self.a if not self.a.losses else self.b
            return Quantity(LOSS, "unknown", f"{side.letter} holds no loss")
        ours, theirs = (float(np.sum([float(np.sum(value)) for value, _ in side.losses])) for side in (self.a, self.b))
        self.case.losses = ours, theirs
        relative = allowed(self.noise[0].forward, self.noise[1].forward)
        logits = self.case.logits[0] if self.case.logits else np.zeros(1)
        scale = max(abs(ours), float(np.linalg.norm(logits)) / math.sqrt(logits.size))  # of one logit
        far = Apart(abs(ours - theirs), abs(ours), relative * scale)
        text = f"{ours:.9g} in A, {theirs:.9g} in B: {far}"
        return Quantity(LOSS, _verdict(far), text, [] if far.agrees else ["loss"], {"loss": far})

    def gradients(self) -> Quantity:
        """The gradients, from the loss backwards."""
        largest = max((float(np.linalg.norm(g)) for g in self.a.gradients.values()), default=0.0)
        relative = allowed(self.noise[0].of_gradients(), self.noise[1].of_gradients())
        distances = {}
        for match in reversed(self.matching.matches):
            both = match.arrays(self.a.gradients, self.b.gradients)
            if both is None:
                continue
            far = apart(*both, relative)
            bound = max(far.bound, self._error(match), 0.0 if any(self._measured) else relative * largest)
            distances[match.names[0]] = Apart(far.distance, far.scale, bound)
        return of_distances(GRADIENTS, distances, "not seen on both sides")

    @property
    def _measured(self) -> tuple[bool, bool]:
        return bool(self.noise[0].gradients), bool(self.noise[1].gradients)

    def _error(self, match: Match) -> float:
        """The distance that the measured errors of a gradient explain, which may be larger than the gradient itself."""
        errors = []
        for side, names in ((self.a, match.a), (self.b, match.b)):
            known = [name for name in names if name in side.exact_gradients and name in side.gradients]
            far = [apart(side.exact_gradients[name], side.gradients[name], 0.0).distance for name in known]
            errors += [max(far)] if far else []
        return MARGIN * min(sum(errors), agreement.ALIKE * min(errors)) if len(errors) == 2 else 0.0

    def first_steps(self) -> list[tuple[Match, Update, Update]]:
        ours, theirs = updates(self.a), updates(self.b)
        steps = []
        for match in self.matching.matches:
            if all(name in ours for name in match.a) and all(name in theirs for name in match.b):
                a = _joined([ours[name] for name in (match.a[:1] if match.summed else match.a)])
                b = _joined([theirs[name] for name in match.b])
                take = match.layout.take.reshape(-1)
                slots = {name: array[take] for name, array in b.slots.items()}
                steps.append((match, a, Update(b.name, b.before[take], b.gradient[take], b.after[take], slots)))
        return steps

    def optimizer(self) -> Quantity:
        """States that are averages of gradients and of their squares, on both sides."""
        distances = {}
        for match, a, b in self.case.steps:
            kinds = [{state.kind for state in one.states} for one in (a, b)]
            both = {"average", "squares"} if all("squares" in of for of in kinds) else set()
            for kind in sorted(both & kinds[0] & kinds[1]):
                x, y = a.state(kind), b.state(kind)
                assert x and y
                distances[f"{x.name} of {match.names[0]}"] = _after(a, a.slots[x.name], b.slots[y.name], a, b)
        nothing = "no state that both sides have in one form: what they make of the gradients is compared"
        return of_distances(OPTIMIZER, distances, nothing)

    def weights(self) -> Quantity:
        """The changes of the weights. Where a gradient is as small as its own rounding, its sign is, too."""
        distances = {
            match.names[0]: _after(a, a.change, b.change, a, b, a.before)
            for match, a, b in self.case.steps
            if not match.summed
        }
        shared = {*self.a.process.of("weights")} & {*self.b.process.of("weights")}
        if distances or not shared:
            result = of_distances(WEIGHTS, distances, "weights after one step are not held by both")
            return replace(result, text=f"what each makes of its gradients: {result.text}") if distances else result
        # Without gradients: the weights themselves, after the first step that both hold.
        step = min(shared)
        limit = allowed(self.noise[0].forward, self.noise[1].forward)
        result = of_distances(WEIGHTS, self.direct(self.a.after(step), self.b.after(step), limit), "no array was kept")
        return replace(result, text=f"after step {step}, without gradients: {result.text}")

    def buffers(self) -> Quantity:
        """State that is no weight, such as running averages, after the step."""
        distances = {}
        limit = allowed(self.noise[0].forward, self.noise[1].forward)
        for layer in self.forward.layers:
            theirs = dict(layer.b.buffers)
            for name, before in layer.a.buffers.items():
                if before.dtype.kind != "f":
                    continue
                other = next(
                    (key for key, one in theirs.items() if one.shape == before.shape and _role(key) == _role(name)),
                    None,
                )
                if other is None:
                    continue
                after = (
                    _later(self.a, layer.a.name, name, before),
                    _later(self.b, layer.b.name, other, theirs.pop(other)),
                )
                if after[0] is not None and after[1] is not None:
                    part = f"{layer.a.name}.{name}"
                    distances[part] = apart(after[0], after[1], limit)
                    if not distances[part].agrees:
                        self.case.buffers.append((part, before, after[0], after[1]))
        return of_distances(BUFFERS, distances, "none that both have")


def _verdict(far: Apart) -> Verdict:
    return "same bits" if far.same else "agrees" if far.agrees else "differs"


def _given(side: Side) -> list[np.ndarray]:
    """What the model is called with, then what else the step was given; each array once."""
    root = outermost(side.calls)
    arrays = [*(root.inputs.values() if root else ()), *side.of("batch").values()]
    result: list[np.ndarray] = []
    for array in arrays:
        if array.size > 1 and not any(one.shape == array.shape and np.array_equal(one, array) for one in result):
            result.append(array)
    return result


def _of_batch(x: np.ndarray, y: np.ndarray, limit: float) -> tuple[Apart, np.ndarray] | None:
    """How far apart two parts of a batch are; classes may be numbers on one side and one-hot on the other."""
    if x.size != y.size and x.ndim != y.ndim and min(x.ndim, y.ndim) == 1:
        wide, narrow = (x, y) if x.ndim > y.ndim else (y, x)
        if wide.shape[:1] == narrow.shape and narrow.dtype.kind in "iu" and (np.sort(wide, -1)[..., :-1] == 0).all():
            classes = wide.argmax(-1)
            return apart(narrow, classes, 0.0), classes if wide is y else narrow
    both = nearest(x, y, limit if "f" in (x.dtype.kind, y.dtype.kind) else 0.0)
    return both[:2] if both else None


def _joined(many: list[Update]) -> Update:
    """The first steps of several weights as one."""
    if len(many) == 1:
        return many[0]
    parts = [(one.before, one.gradient, one.after) for one in many]
    before, gradient, after = (np.concatenate(of) for of in zip(*parts, strict=True))
    slots = {}
    if len({len(one.slots) for one in many}) == 1:
        for names in zip(*(one.slots for one in many), strict=True):
            slots[names[0]] = np.concatenate([one.slots[name] for one, name in zip(many, names, strict=True)])
    return Update(" + ".join(one.name for one in many), before, gradient, after, slots)


def _after(
    of: Update, ours: np.ndarray, theirs: np.ndarray, a: Update, b: Update, weight: np.ndarray | None = None
) -> Apart:
    """How far apart two things are that both sides made of gradients which agree, but are not the same.

    Bias corrections are 1 - beta in float32, which has a relative error of its rounding over 1 - beta.
    """
    factors = [state.factor for one in (a, b) if (state := one.state("squares")) and 0 < state.factor < 1]
    rounding = 64 * ROUNDING + (4 * ROUNDING / min(factors) if factors else 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        sensitivity = np.nan_to_num(4 * np.abs(a.gradient - b.gradient) / np.abs(of.gradient), posinf=np.inf) + rounding
    scale = float(np.abs(ours).max(initial=0))
    bound = np.minimum(sensitivity, 2) * np.where(sensitivity < 1, np.abs(ours), scale) + 2 * ROUNDING * scale
    bound += 4 * ROUNDING * np.abs(weight) if weight is not None else 0
    distance = np.abs(ours - theirs)
    if not distance.size:
        return Apart(0.0, 0.0, 0.0)
    worst = int(np.argmax(distance - bound))
    return Apart(float(distance[worst]), scale, float(bound[worst]))


def _role(name: str) -> str:
    low = name.lower()
    return "mean" if "mean" in low else "var" if "var" in low else low


def _later(side: Side, module: str, name: str, before: np.ndarray) -> np.ndarray | None:
    """A buffer after the first step: where a step holds those before it, the next step's."""
    for step in (1, 2):
        held: Arrays = side.of("buffers", step)
        path = [part for part in f"{module}.{name}".replace("/", ".").split(".") if part]
        parts = {key: key.replace("/", ".").split(".") for key, array in held.items() if array.shape == before.shape}
        fitting = [key for key, own in parts.items() if own[-1] == path[-1] and {*path} <= {*own}]
        key = next(iter(fitting), None)
        if key is not None and not np.array_equal(held[key], before):
            return held[key]
    return None
