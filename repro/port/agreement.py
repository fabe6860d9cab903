"""Agreement of two arrays: the same bits, or as near as rounding is measured to be."""

import math
from dataclasses import dataclass

import numpy as np

from repro.port import layouts
from repro.port.side import Called, Side

ROUNDING = 2.0**-24
"""Half a unit in the last place of float32, relative to the number."""
OPERANDS = 2.0**-13
"""The rounding of operands in portable numerics, of 13 bits."""
MARGIN = 4
"""How many times the rounding errors that were measured of both sides two arrays may be apart: an error is that of one order of sums, and another order has another one."""
ALIKE = 32
"""How many times more than the other side one side may round: more is another precision, and not noise."""


@dataclass(frozen=True)
class Apart:
    """How far apart two arrays are."""

    distance: float
    """The L2 norm of the difference; infinite where only one of two elements is a finite number."""
    scale: float
    """The L2 norm of A."""
    bound: float
    """The distance that rounding explains."""

    @property
    def same(self) -> bool:
        return self.distance == 0

    @property
    def agrees(self) -> bool:
        return self.distance <= self.bound

    @property
    def relative(self) -> float:
        return self.distance / self.scale if self.scale else self.distance

    def __str__(self) -> str:
        if self.same:
            return "the same bits"
        bound = self.bound / self.scale if self.scale else self.bound
        return f"{self.relative:.1e} apart, {'within' if self.agrees else 'beyond'} rounding ({bound:.1e})"


def apart(ours: np.ndarray, theirs: np.ndarray, relative: float) -> Apart:
    """The distance of two arrays of one shape; `relative`: that which rounding explains, of A's norm."""
    a, b = (np.asarray(array, np.float64) for array in (ours, theirs))
    equal = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore", over="ignore"):
        distances = np.where(equal, 0.0, np.abs(a - b))
    scale = float(np.linalg.norm(a[np.isfinite(a)]))
    distance = float(np.linalg.norm(distances)) if np.isfinite(distances).all() else float("inf")
    return Apart(distance, scale, relative * scale)


class Noise:
    """Rounding errors of one side that were measured: its float32 beside its float64.

    Errors grow from layer to layer. So what one call's noise says is the largest of all calls up to it.
    """

    def __init__(self, side: Side):
        self.calls: list[tuple[int, float]] = []
        self.measured = any(call.exact for call in side.calls)
        unit = OPERANDS if side.rounds_operands else ROUNDING
        largest = ROUNDING
        for place, call in enumerate(side.calls, 1):
            errors = [_error(call.outputs[name], exact) for name, exact in call.exact.items() if name in call.outputs]
            # Without a measurement: a random walk of roundings, a step for each call.
            largest = max([largest, *errors]) if self.measured else unit * math.sqrt(place)
            self.calls.append((call.number, largest))
        self.forward = largest
        """Relative noise at the end of the forward pass."""
        self.gradients = {
            name: _error(side.gradients[name], exact)
            for name, exact in side.exact_gradients.items()
            if name in side.gradients
        }

    def at(self, call: Called) -> float:
        """The relative noise of what a call returns."""
        return next((noise for number, noise in reversed(self.calls) if number <= call.number), ROUNDING)

    def of_gradients(self) -> float:
        """The relative noise of gradients: the median of the layers', or that of the forward pass where none is measured."""
        return max([self.forward, *([float(np.median([*self.gradients.values()]))] if self.gradients else [])])


def _error(ours: np.ndarray, exact: np.ndarray) -> float:
    if ours.shape != exact.shape or not np.issubdtype(ours.dtype, np.floating):
        return 0.0
    distance = apart(exact, ours, 0.0)
    return distance.relative if np.isfinite(distance.distance) else 0.0


def allowed(a: float, b: float) -> float:
    """The relative distance that the noise of two sides explains."""
    return MARGIN * min(a + b, ALIKE * min(a, b))


def nearest(ours: np.ndarray, theirs: np.ndarray, relative: float) -> tuple[Apart, np.ndarray, str] | None:
    """How far apart two arrays are, whatever the order of the axes; with B's in A's layout, and the layout in words.

    None where their sizes differ. Arrays of one shape that agree are not permuted.
    """
    if ours.size != theirs.size:
        return None
    best = None
    for layout in layouts.of_axes(ours.shape, theirs.shape):
        moved = layout(theirs)
        distance = apart(ours, moved, relative)
        if best is None or distance.distance < best[0].distance:
            best = distance, moved, layout.words
        if distance.agrees:
            break
    return best


def same_samples(ours: np.ndarray, theirs: np.ndarray, relative: float) -> bool:
    """True if each sample of two arrays, along the first axis, has the same values in another order."""
    if ours.size != theirs.size or not ours.ndim or ours.shape[:1] != theirs.shape[:1]:
        return False
    rows = [np.sort(np.asarray(array, np.float64).reshape(len(array), -1), axis=1) for array in (ours, theirs)]
    return apart(rows[0], rows[1], relative).agrees
