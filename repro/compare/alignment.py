"""Resumed processes beside whole ones.

After which step of the whole run a resumed one goes on, and which of its optimizers is which. The observer numbers
optimizers in the order of their first steps (`1` of `1.bias`), and writes an optimizer's initial weights with its first
step: those of a GAN's second one stand in step 2.
"""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

from repro.compare.names import Names, number_of, renamed, renumbered, without_counterpart
from repro.record.lines import CHANGED, STARTS, Hashes, Process

OF_OPTIMIZERS = ("optimizer", "weights", "buffers")
"""The channels that hold, in each step, what all optimizers have that took a step so far."""


@dataclass(frozen=True)
class Course:
    """The weights of a process in the course of its steps."""

    process: Process

    @cached_property
    def starts(self) -> dict[int, dict[str, str]]:
        """Initial weights, by the step after which they were hashed."""
        return {max(step - 1, 0): weights for step, weights in sorted(self.process.of(STARTS).items())}

    def starts_by_optimizer(self) -> list[tuple[int, str, dict[str, str]]]:
        """The step after which the initial weights of an optimizer were hashed, its number, and they."""
        starts: dict[tuple[int, str], dict[str, str]] = {}
        for step, weights in self.starts.items():
            for name, code in weights.items():
                starts.setdefault((step, number_of(name)), {})[name] = code
        return [(step, number, weights) for (step, number), weights in starts.items()]

    @cached_property
    def _hashed(self) -> dict[str, tuple[list[int], list[str]]]:
        """The steps after which each weight was hashed, and its hashes then, by name."""
        positions: dict[str, tuple[list[int], list[str]]] = {}
        for step, weights in [*self.starts.items(), *sorted(self.process.of("weights").items())]:
            for name, code in weights.items():
                steps, codes = positions.setdefault(name, ([], []))
                if not steps or step > steps[-1]:
                    steps.append(step)
                    codes.append(code)
        return positions

    def weight(self, name: str, step: int) -> str | None:
        """The hash of a weight after a step: the last one until then, or else its first."""
        steps, codes = self._hashed.get(name, ([], []))
        return codes[max(bisect_right(steps, step) - 1, 0)] if steps else None

    def place(self, name: str, step: int) -> int:
        """The step with the hash that weight() gives."""
        steps, _ = self._hashed.get(name, ([step], []))
        return steps[max(bisect_right(steps, step) - 1, 0)]

    @cached_property
    def _changed(self) -> dict[int, dict[str, str]]:
        """The weights that something other than the optimizer changed after a step, by step."""
        return {step - 1: weights for step, weights in self.process.of(CHANGED).items()}

    def before(self, name: str, step: int) -> str | None:
        """The hash of a weight as the step after this one begins."""
        return self._changed.get(step, {}).get(name) or self.weight(name, step)

    def counterparts(self, names: Iterable[str], number: str) -> dict[str, str]:
        """The names of weights of another run, and those of an optimizer of this one, in the order of the framework."""
        same = {name: renumbered(name, number) for name in names}
        own = [name for name in self._hashed if number_of(name) == number]
        return same | without_counterpart(same, own)

    def stepped(self, step: int) -> set[str]:
        """The optimizers that took a step, as far as it shows: those with gradients."""
        hashes = self.process.steps.get(step, {})
        return {number_of(name) for name in hashes.get("gradients", hashes.get("weights", {}))}

    @cached_property
    def last_steps(self) -> dict[str, int]:
        """The last step that each optimizer took."""
        return {number: step for step in sorted(self.process.steps) if step for number in self.stepped(step)}


@dataclass(frozen=True)
class Alignment:
    """The position of a process within a whole one."""

    after: int = 0
    """The step of the whole one after which it continues."""
    numbers: dict[str, str] = field(default_factory=dict)
    """The number of each optimizer of the resumed process in the whole one."""
    names: Names = field(default_factory=dict)
    """By channel, the names of arrays of the resumed process that have another name in the whole one, with that."""


def align(a: Process, b: Process, resumed: bool = False) -> Alignment:
    """After which step of `a` the first one of `b` comes: the one whose weights `b` starts from.

    Where it counts on by itself, its count says so. Where it starts from other weights, or from those of several steps,
    a run known to be resumed is taken to end where `a` does.
    """
    alignment = _beside(a, b, resumed)
    return replace(alignment, names=renamed(a, aligned(b, alignment), alignment.after))


def _beside(a: Process, b: Process, resumed: bool) -> Alignment:
    """Align two processes by their steps alone, without names."""
    if b.begun > a.begun:
        return Alignment(b.begun)
    whole, rest, ends = Course(a), Course(b), a.last - b.last
    starts = rest.starts_by_optimizer()
    fitting = {
        step: numbers
        for step in [0, *sorted(a.of("weights"))]
        if (numbers := _numbers(whole, starts, step)) and _same_turn(whole, rest, step, numbers)
    }
    if ends in fitting and (resumed or 0 not in fitting):
        return Alignment(ends, fitting[ends])
    if fitting:
        return Alignment(min(fitting), fitting[min(fitting)])
    return Alignment(max(ends, 0) if resumed else 0)


def _numbers(whole: Course, starts: list[tuple[int, str, dict[str, str]]], after: int) -> dict[str, str]:
    """Maps numbers of optimizers to the whole one's, if it has these weights after a step; empty if not."""
    numbers: dict[str, str] = {}
    last = whole.last_steps
    for later, number, weights in starts:
        possible = sorted(
            {number, *last} - {*numbers.values()}, key=lambda one: (last.get(one, 0) <= after, one != number)
        )
        made_later = number in possible and all(whole.place(name, after) > after for name in weights)
        fitting = (other for other in possible if _has_weights(whole, other, weights, after + later))
        match = number if made_later else next(fitting, None)
        if match is None:
            return {}
        numbers[number] = match
    return numbers


def _has_weights(whole: Course, number: str, weights: dict[str, str], step: int) -> bool:
    """True if an optimizer of the whole one has these weights after a step, or when the next step begins."""
    names = whole.counterparts(weights, number)
    return all(
        code in (whole.weight(names[name], step), whole.before(names[name], step)) for name, code in weights.items()
    )


def _same_turn(whole: Course, rest: Course, after: int, numbers: dict[str, str]) -> bool:
    """True if the optimizers that step first in the rest can be those that step next in the whole."""
    first, following = {numbers.get(number, number) for number in rest.stepped(1)}, whole.stepped(after + 1)
    return first <= following or following <= first


def aligned(process: Process, alignment: Alignment) -> Process:
    """A process with its steps counted from 1, and its optimizers and arrays named as in the whole run."""
    steps = process.steps
    if alignment.after and alignment.after == process.begun:
        steps = {step - process.begun: hashes for step, hashes in steps.items()}
    if any(number != other for number, other in alignment.numbers.items()):
        steps = {step: _renumbered(hashes, alignment.numbers) for step, hashes in steps.items()}
    if alignment.names:
        steps = {step: _renamed(hashes, alignment.names) for step, hashes in steps.items()}
    return process if steps is process.steps else replace(process, steps=steps)


def _renumbered(hashes: Hashes, numbers: dict[str, str]) -> Hashes:
    """The names of a batch begin with a number, too: that of a loader's turn."""
    return {
        channel: names
        if channel == "batch"
        else {renumbered(name, numbers.get(number_of(name), number_of(name))): code for name, code in names.items()}
        for channel, names in hashes.items()
    }


def _renamed(hashes: Hashes, names: Names) -> Hashes:
    return {
        channel: {names[channel].get(name, name): code for name, code in of.items()} if channel in names else of
        for channel, of in hashes.items()
    }


def last_fitting(a: Process, b: Process, until: int, first: int) -> int | None:
    """The last step of `a`, up to one, whose weights `b` starts from, but `first` before all; None where there is none."""
    whole, rest = Course(a), Course(b)
    starts = rest.starts_by_optimizer()
    earlier = (step for step in [0, *a.of("weights")] if step <= until and step != first)
    steps = [first, *sorted(earlier, reverse=True)]
    return next((step for step in steps if starts and _numbers(whole, starts, step)), None)
