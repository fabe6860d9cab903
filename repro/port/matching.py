"""Which weights of two sides belong together: by their values, their owners, their shapes and the order of calls."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from repro.port import layouts
from repro.port.layouts import Layout
from repro.port.side import Arrays, Side

VALUES, OWNERS, ORDER, FILE = "values", "layer", "shape and order", "file of pairs"

SUMMED = ("bias_ih", "bias_hh")
"""Two biases of PyTorch's recurrent layers, of which only the sum matters; other libraries have one."""


@dataclass(frozen=True)
class Match:
    """Weights of A, one after another, that are weights of B: one each, or several in one."""

    a: tuple[str, ...]
    b: tuple[str, ...]
    by: str
    layout: Layout
    """How B's elements lie in A: in A's shape, or of several weights in all of their elements."""
    summed: bool = False
    """True if the sum of A's two is B's."""

    @property
    def names(self) -> tuple[str, str]:
        return " + ".join(self.a), " + ".join(self.b)

    def __str__(self) -> str:
        words = "; ".join(filter(None, [self.layout.words, f"by {self.by}" if self.by != VALUES else ""]))
        return f"{self.names[0]} = {self.names[1]}" + (f" ({words})" if words else "")

    def arrays(self, ours: Arrays, theirs: Arrays) -> tuple[np.ndarray, np.ndarray] | None:
        """Arrays of A, and those of B in A's layout, by the weights' names; None where one is missing."""
        if any(name not in ours for name in self.a) or any(name not in theirs for name in self.b):
            return None
        b = np.concatenate([np.asarray(theirs[name]).reshape(-1) for name in self.b])
        if self.summed:
            return np.asarray(ours[self.a[0]]), self.layout(b)
        if len(self.a) == 1:
            return np.asarray(ours[self.a[0]]), self.layout(b)
        return np.concatenate([np.asarray(ours[name]).reshape(-1) for name in self.a]), self.layout(b)


@dataclass
class Matching:
    """All weights that belong together, and those of which that is not known."""

    matches: list[Match] = field(default_factory=list)
    ambiguous: list[tuple[str, list[str]]] = field(default_factory=list)
    """Weights of A, and those of B that each of them could be."""
    alone: tuple[list[str], list[str]] = ((), ())  # type: ignore[assignment]
    """Weights of A and of B that have no counterpart by their sizes."""

    def of(self, name: str, side: int = 0) -> Match | None:
        """The match that a weight of A, or of B, is in."""
        return next((match for match in self.matches if name in (match.a, match.b)[side]), None)


class Matcher:
    """Matches the weights of two sides, the surest first."""

    def __init__(self, a: Side, b: Side, given: dict[str, str]):
        self.sides = a, b
        self.free = [dict.fromkeys(side.called_order()) for side in (a, b)]
        self.matches: list[Match] = []
        for ours, theirs in given.items():
            self.take((ours,), (theirs,), FILE, self.layout(ours, theirs))

    def match(self) -> Matching:
        self.by_values()
        self.sums()
        self.in_parts()
        self.by_owners()
        ambiguous = self.by_order()
        order = {name: place for place, name in enumerate(self.sides[0].called_order())}
        self.matches.sort(key=lambda match: order[match.a[0]])
        alone = [list(free) for free in self.free]
        named = {name for name, others in ambiguous} | {other for _, others in ambiguous for other in others}
        rest = [[name for name in names if name not in named] for names in alone]
        return Matching(self.matches, ambiguous, (rest[0], rest[1]))

    def take(self, ours: Sequence[str], theirs: Sequence[str], by: str, layout: Layout, summed: bool = False) -> None:
        self.matches.append(Match(tuple(ours), tuple(theirs), by, layout, summed))
        for free, names in zip(self.free, (ours, theirs), strict=True):
            for name in names:
                free.pop(name, None)

    def layout(self, ours: str, theirs: str) -> Layout:
        """The layout of two weights: by their values, else by what the libraries use for such a layer."""
        a, b = self.sides[0].weights[ours], self.sides[1].weights[theirs]
        return (layouts.by_values(a, b) if _tells(a) else None) or self.usual(ours, theirs)

    def usual(self, ours: str, theirs: str) -> Layout:
        """The layout that two libraries' conventions make: PyTorch has [out, in, ...], the others [..., in, out]."""
        a, b = self.sides[0].weights[ours], self.sides[1].weights[theirs]
        candidates = list(layouts.of_axes(a.shape, b.shape))
        torch = [_is_pytorch(side) for side in self.sides]
        table = any(
            owner and "Embed" in owner.kind for owner in (self.sides[0].owner(ours), self.sides[1].owner(theirs))
        )
        if a.ndim == b.ndim and a.ndim > 1 and torch[0] != torch[1] and not table:
            axes = range(a.ndim)
            order = (*axes[:1:-1][::-1], 1, 0) if torch[1] else (a.ndim - 1, a.ndim - 2, *axes[:-2])
            index = np.arange(b.size).reshape(b.shape).transpose(order)
            if index.shape == a.shape:
                words = "transposed" if order == (1, 0) else f"axes {' '.join(map(str, order))}"
                return Layout(index, words)
        return candidates[0]

    def by_values(self) -> None:
        """Weights that hold the same values, which no other weight holds."""
        keys: list[dict[bytes, list[str]]] = [defaultdict(list), defaultdict(list)]
        for side, free, of in zip(self.sides, self.free, keys, strict=True):
            for name in free:
                if _tells(side.weights[name]):
                    of[layouts.ordered(side.weights[name]).tobytes()].append(name)
        for key, ours in keys[0].items():
            theirs = keys[1].get(key, [])
            if len(ours) == len(theirs):
                for a, b in zip(ours, theirs, strict=True):
                    self.take((a,), (b,), VALUES, self.layout(a, b))

    def sums(self) -> None:
        """PyTorch's two biases of a recurrent layer, and the one of another library."""
        for ours in [name for name in self.free[0] if SUMMED[0] in name]:
            other = ours.replace(*SUMMED)
            if other not in self.free[0]:
                continue
            weights = self.sides[0].weights
            total = weights[ours] + weights[other]
            for many in _choices(total, [*self.free[1]], self.sides[1].weights):
                take = layouts.joined([total], [self.sides[1].weights[name] for name in many])
                if take is not None:
                    self.take((ours, other), many, VALUES, Layout(take, "their sum"), summed=True)
                    break

    def in_parts(self) -> None:
        """Weights that are several weights in one, as query, key and value, or the gates of an LSTM."""
        for whole, parts in ((1, 0), (0, 1)):
            for name in list(self.free[whole]):
                array = self.sides[whole].weights[name]
                weights = self.sides[parts].weights
                for many in _choices(array, [*self.free[parts]], weights):
                    ours, theirs = ((name,), many) if whole == 0 else (many, (name,))
                    take = layouts.joined(
                        [self.sides[0].weights[each] for each in ours], [self.sides[1].weights[each] for each in theirs]
                    )
                    if take is not None:
                        shape = array.shape if whole == 0 else take.shape
                        self.take(ours, theirs, VALUES, Layout(take.reshape(shape), f"{len(many)} in one"))
                        break

    def by_owners(self) -> None:
        """Weights of layers whose other weights belong together, as biases that are zero."""
        for match in list(self.matches):
            owners = [
                [owner for name in names if (owner := side.owner(name))]
                for side, names in zip(self.sides, (match.a, match.b), strict=True)
            ]
            rest = [
                [name for owner in of for name in owner.weights.values() if name in free]
                for of, free in zip(owners, self.free, strict=True)
            ]
            for ours, theirs in _alike(rest, [side.weights for side in self.sides], (len(match.a), len(match.b))):
                self.take(ours, theirs, OWNERS, self.along(match, ours, theirs))

    def along(self, match: Match, ours: Sequence[str], theirs: Sequence[str]) -> Layout:
        """The layout of vectors beside a matrix: its units, in the order that the matrix has them in."""
        weights = [side.weights for side in self.sides]
        size = sum(weights[0][name].size for name in ours)
        plain = Layout(np.arange(size) if len(ours) > 1 else np.arange(size).reshape(weights[0][ours[0]].shape), "")
        if len(ours) != len(match.a) or len(theirs) != len(match.b) or any(weights[0][name].ndim != 1 for name in ours):
            return plain
        order = units(match, *weights)
        words = match.layout.words if len(ours) + len(theirs) > 2 else ""
        return Layout(order, words) if order is not None and order.size == size else plain

    def by_order(self) -> list[tuple[str, list[str]]]:
        """The rest, by shapes, in the order of calls; those of which both sides have other numbers are ambiguous."""
        by_shape: list[dict[tuple[int, ...], list[str]]] = [defaultdict(list), defaultdict(list)]
        for side, free, of in zip(self.sides, self.free, by_shape, strict=True):
            for name in free:
                of[_shape(side.weights[name])].append(name)
        ambiguous = []
        for shape, ours in by_shape[0].items():
            theirs = by_shape[1].get(shape, [])
            pairs = _by_words(ours, theirs)
            if pairs is None:
                ambiguous += [(name, theirs) for name in ours if theirs]
                continue
            for a, b in pairs:
                self.take((a,), (b,), ORDER, self.layout(a, b))
        return ambiguous


def _is_pytorch(side: Side) -> bool:
    return side.framework.startswith("PyTorch")


def _shape(array: np.ndarray) -> tuple[int, ...]:
    return tuple(sorted(size for size in array.shape if size > 1))


def _tells(array: np.ndarray) -> bool:
    """True if the values of an array say which one it is: not zeros, ones, or a few numbers."""
    return array.size > 1 and np.unique(array).size > max(array.size // 4, 1)


def _choices(whole: np.ndarray, names: list[str], weights: Arrays) -> Iterable[tuple[str, ...]]:
    """The weights, of some, whose values are all in one array, if together they are as large."""
    values = layouts.ordered(whole)
    if not _tells(whole):
        return
    many = []
    for name in names:
        part = weights[name]
        if _tells(part) and part.size <= whole.size:
            places = np.minimum(np.searchsorted(values, layouts.ordered(part)), values.size - 1)
            if np.array_equal(values[places], layouts.ordered(part)):
                many.append(name)
    if many and sum(weights[name].size for name in many) == whole.size:
        yield tuple(many)


def _alike(
    rest: list[list[str]], weights: list[Arrays], counts: tuple[int, int]
) -> Iterable[tuple[list[str], list[str]]]:
    """The weights of two groups of layers that can only be each other's: by size and by whether all are equal numbers."""
    kinds = [defaultdict(list), defaultdict(list)]  # type: ignore[var-annotated]
    for of, names, held in zip(kinds, rest, weights, strict=True):
        for name in names:
            array = held[name]
            value = float(array.flat[0]) if array.size and np.unique(array).size == 1 else None
            of[value].append(name)
    for value, ours in kinds[0].items():
        theirs = kinds[1].get(value, [])
        sizes = [sum(held[name].size for name in names) for held, names in zip(weights, (ours, theirs), strict=True)]
        if theirs and sizes[0] == sizes[1] and (len(ours), len(theirs)) in ((1, 1), counts):
            yield ours, theirs


def units(match: Match, ours: Arrays, theirs: Arrays) -> np.ndarray | None:
    """For each unit of the matched matrices of A, its place among those of B; None where that does not follow.

    A unit is a place along the axes of the results, at the beginning of a weight or at its end: int64[units].
    """
    starts = np.cumsum([0, *(theirs[name].size for name in match.b)])
    takes = np.split(match.layout.take.reshape(-1), np.cumsum([ours[name].size for name in match.a])[:-1])
    for front, end in product(
        _matrices([ours[name] for name in match.a]), _matrices([theirs[name] for name in match.b])
    ):
        offsets = np.cumsum([0, *(shape[axis] for shape, axis in end)])
        order = []
        for (shape, axis), take in zip(front, takes, strict=True):
            part = np.searchsorted(starts, take, "right") - 1
            place = np.empty(take.size, np.int64)
            for number, (other, other_axis) in enumerate(end):
                inside = part == number
                place[inside] = np.unravel_index(take[inside] - starts[number], other)[other_axis] + offsets[number]
            lines = np.moveaxis(place.reshape(shape), axis, 0)
            if not (lines == lines[:, :1]).all():
                break
            order.append(lines[:, 0])
        else:
            result = np.concatenate(order)
            if np.array_equal(np.sort(result), np.arange(offsets[-1])):
                return np.asarray(result)
    return None


def _matrices(arrays: list[np.ndarray]) -> Iterator[list[tuple[tuple[int, int], int]]]:
    """The ways to see arrays of as many axes as matrices, and which axis has the units: shapes and axes."""
    if len({array.ndim for array in arrays}) == 1 and arrays[0].ndim > 1:
        for cut, axis in product(range(1, arrays[0].ndim), (0, 1)):
            yield [((math.prod(array.shape[:cut]), math.prod(array.shape[cut:])), axis) for array in arrays]


def _by_words(ours: list[str], theirs: list[str]) -> list[tuple[str, str]] | None:
    """Weights of one shape in pairs: biases with biases, scales with scales, each in its order; None where that leaves some."""
    groups = [defaultdict(list), defaultdict(list)]  # type: ignore[var-annotated]
    for of, names in zip(groups, (ours, theirs), strict=True):
        for name in names:
            of[_role(name)].append(name)
    if {role: len(names) for role, names in groups[0].items()} == {
        role: len(names) for role, names in groups[1].items()
    }:
        return [pair for role in groups[0] for pair in zip(groups[0][role], groups[1][role], strict=True)]
    roles = Counter(map(_role, ours)), Counter(map(_role, theirs))
    if len(ours) == len(theirs) and "other" in roles[0] | roles[1]:
        return [*zip(ours, theirs, strict=True)]
    return None


def _role(name: str) -> str:
    """The role of a weight by the end of its name: bias, weight or another."""
    end = name.replace("/", ".").split(".")[-1].lower()
    if "bias" in end or end in ("beta", "b", "offset"):
        return "bias"
    return (
        "weight" if any(word in end for word in ("weight", "kernel", "scale", "gamma", "embedding", "w")) else "other"
    )
