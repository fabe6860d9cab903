"""Calls of both sides that belong together: those that use the same weights."""

from dataclasses import replace

import numpy as np

from repro.port.matching import Match, Matching, units
from repro.port.side import Arrays, Called, Side


class CallPairs:
    """The calls of two sides whose weights were matched."""

    def __init__(self, a: Side, b: Side, matching: Matching):
        self.sides, self.matching = (a, b), matching

    def pairs(self) -> list[tuple[Called, Called]]:
        """The calls of both sides that use the same weights, in A's order: the n-th with the n-th."""
        used: dict[str, int] = {}
        pairs = []
        for call in self.sides[0].calls:
            match = next((m for name in call.weights.values() if (m := self.matching.of(name))), None)
            if match is None or match.a[0] not in call.weights.values():
                continue
            use = used[match.a[0]] = used.get(match.a[0], 0) + 1
            both = [self._calls(side, names, use) for side, names in zip(self.sides, (match.a, match.b), strict=True)]
            if all(both):
                a, b = (of[0] if len(of) == 1 else joined(of) for of in both)
                pairs.append(
                    self._of_one_size(a, b) if len(both[0]) == len(both[1]) else (a, self._in_order(match, a, b))
                )
        return pairs

    def _calls(self, side: Side, names: tuple[str, ...], use: int) -> list[Called]:
        """The calls that use some weights for the n-th time: one for each module that holds them."""
        owners = dict.fromkeys(owner.name for name in names if (owner := side.owner(name)))
        uses = [
            [call for call in side.calls if call.name == owner and {*call.weights.values()} & {*names}]
            for owner in owners
        ]
        return [calls[use - 1] for calls in uses] if uses and all(len(calls) >= use for calls in uses) else []

    def _of_one_size(self, a: Called, b: Called) -> tuple[Called, Called]:
        """Two calls, or those around one of them: a recurrent layer calls its cell for each step of time."""
        around = [
            sorted((call for call in side.calls if call.name and call.holds(inner)), key=lambda call: -len(call.name))
            for side, inner in zip(self.sides, (a, b), strict=True)
        ]
        pairs = [(a, b), *((a, outer) for outer in around[1]), *((outer, b) for outer in around[0])]
        fitting = [
            (x, y) for x, y in pairs if _sizes(x.outputs) & _sizes(y.outputs) and _sizes(x.inputs) & _sizes(y.inputs)
        ]
        return fitting[0] if fitting else (a, b)

    def _in_order(self, match: Match, a: Called, b: Called) -> Called:
        """B's call with the units of its result in A's order, where several weights are one on one of the sides."""
        order = units(match, self.sides[0].weights, self.sides[1].weights)
        ours, theirs = first(a.outputs), first(b.outputs)
        if order is None or ours is None or theirs is None:
            return b
        if order.size * len(ours) > theirs.size or theirs.size % order.size:
            return b
        wide = {name: array.reshape(-1, order.size)[:, order].reshape(-1) for name, array in b.outputs.items()}
        return replace(
            b,
            outputs={
                name: array.reshape(ours.shape) if array.size == ours.size else array for name, array in wide.items()
            },
        )


def joined(calls: list[Called]) -> Called:
    """Several calls with one input as one, as of query, key and value: their results one after another."""

    def one_after_another(results: list[Arrays]) -> Arrays:
        arrays = [first(of) for of in results]
        rows = [array.reshape(*array.shape[:2], -1) for array in arrays if array is not None]
        alike = len(rows) == len(calls) and len({array.shape[:-1] for array in rows}) == 1
        return {"": np.concatenate(rows, -1)} if alike else {}

    return replace(
        calls[0],
        name=" + ".join(call.name for call in calls),
        number=max(call.number for call in calls),
        outputs=one_after_another([call.outputs for call in calls]) or calls[0].outputs,
        exact=one_after_another([call.exact for call in calls]),
        weights={
            f"{place}.{name}": weight for place, call in enumerate(calls) for name, weight in call.weights.items()
        },
    )


def first(arrays: Arrays) -> np.ndarray | None:
    return next(iter(arrays.values()), None)


def _sizes(arrays: Arrays) -> set[int]:
    return {array.size for array in arrays.values()}
