"""Distance between the arrays of two records.

At the first divergence, and how it grows with the steps.
"""

from dataclasses import dataclass

import numpy as np

from repro.compare.difference import Difference
from repro.compare.pairs import Pair
from repro.record.lines import STARTS
from repro.record.record import Record
from repro.structs import LARGEST

POINTS = 20  # the most steps at which the growth is reported

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Distance:
    """The distance between two arrays."""

    name: str
    elements: int
    """The number of elements that differ."""
    size: int
    relative: float | None
    """The L2 norm of the difference over that of the first array; None if that is not a number."""
    ulps: int | None
    """The largest distance in units in the last place, for float32."""

    def __str__(self) -> str:
        most = f"up to {self.ulps} ulp, " if self.ulps is not None else ""
        return f"`{self.name}`: {self.elements} of {self.size} elements, {most}relative {_shown(self.relative)}"


@dataclass(frozen=True)
class Point:
    """The distance between all weights after a step of the first record."""

    step: int
    relative: float | None
    ulps: int | None

    def __str__(self) -> str:
        return f"step {self.step}: {_shown(self.relative)}"


def _shown(relative: float | None) -> str:
    return "unknown (not all is finite)" if relative is None else f"{relative:.1e}"


def distance(a: Record, b: Record, difference: Difference) -> Distance | None:
    """The distance of the first differing array that both records kept; None if they kept none."""
    if difference.pair is None or difference.step is None:
        return None
    ours, theirs = _both(a, b, difference.pair, difference.step, difference.channel, *difference.names[:1])
    for name in difference.names:
        x, y = ours.get(name), theirs.get(name)
        if x is None or y is None or x.shape != y.shape or x.dtype != y.dtype:
            continue
        bits = [array.reshape(-1).view(f"V{array.itemsize}") for array in (x, y)]
        return Distance(name, int((bits[0] != bits[1]).sum()), x.size, relative(x, y), _ulps(x, y))
    return None


def growth(a: Record, b: Record, difference: Difference) -> list[Point]:
    """Distances between all weights, from the last equal step on, as far as both kept them."""
    if difference.pair is None or difference.step is None:
        return []
    since = difference.equal_before if difference.equal_before is not None else difference.step
    steps = [step for step in difference.pair.steps() if step >= since and difference.pair.hashes(step, _weights(step))]
    points = []
    for step in steps[:: -(-len(steps) // POINTS) or 1]:
        ours, theirs = _both(a, b, difference.pair, step, _weights(step))
        names = [name for name in ours if name in theirs and ours[name].shape == theirs[name].shape]
        if names:
            x, y = (np.concatenate([arrays[name].ravel() for name in names]) for arrays in (ours, theirs))
            points.append(Point(step, relative(x, y), _ulps(x, y)))
    return points


def _weights(step: int) -> str:
    return "weights" if step else STARTS


def _both(a: Record, b: Record, pair: Pair, step: int, channel: str, name: str = "") -> tuple[Arrays, Arrays]:
    """The arrays of both sides at a step of the first, where this name is."""
    ours, theirs = pair.places(step, channel, name)
    return a.arrays(pair.a, *ours, b), b.arrays(pair.b, *theirs)


def _ulps(x: np.ndarray, y: np.ndarray) -> int | None:
    return ulps(x, y) if x.dtype == y.dtype == np.float32 and x.size else None


def ulps(x: np.ndarray, y: np.ndarray) -> int:
    """The largest distance of two elements of float32 arrays, in units in the last place: how many float32 lie between.

    The bits of a float32, read as an integer, order as the magnitudes do; a negative one counts downwards from zero.
    """
    ordered = []
    for array in (x, y):
        bits = np.ascontiguousarray(array, np.float32).view(np.int32).astype(np.int64)
        ordered.append(np.where(bits < 0, -(bits & 0x7FFFFFFF), bits))
    return int(np.abs(ordered[0] - ordered[1]).max())


def relative(x: np.ndarray, y: np.ndarray) -> float | None:
    """The L2 norm of the difference over that of the first; 0 for equal arrays.

    None where it is no number that can be written down: an element is not finite, or is too large to be squared.
    """
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    with np.errstate(all="ignore"):
        size, apart = float(np.linalg.norm(x)), float(np.linalg.norm(x - y))
    ratio = apart / size if size else apart
    return ratio if ratio < LARGEST else None  # NaN is not
