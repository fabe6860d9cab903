"""Causes that further runs test.

Where two baseline runs differ, each hypothesis holds something at one value, and then at another one: if it is the cause,
runs with one value are the same, and runs with two values differ. One run that says otherwise refutes it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import comb
from typing import Protocol

from repro.compare.difference import Difference, first_difference
from repro.compare.metrics import METRICS
from repro.compare.reasons.case import RUNS
from repro.record.lines import CHANNELS
from repro.record.record import OUTPUTS
from repro.text import listed
from repro.verify.questions import Change
from repro.verify.trial import Trial

MOST = 5  # runs with one value
LIKELY = 0.01  # the chance that runs come out so though nothing decides but chance: below it, a hypothesis holds


class RunWith(Protocol):
    """Makes a run with a change."""

    def __call__(self, change: Change, against: Trial | None = None) -> Trial:
        """The run; it may end where it first differs from `against`."""
        ...


@dataclass(frozen=True)
class Shown:
    """The text of a hypothesis that runs confirmed."""

    text: str
    alone: bool
    """True if nothing differs but by this cause."""


@dataclass(frozen=True)
class Hypothesis:
    """A cause that can be held at a value."""

    name: str
    cause: str
    remedy: str
    values: tuple[Change, ...]
    """One change for each value; if two have the same outcome, a third one is tried, and so on."""
    suits: Callable[[Difference], bool]
    """A function that says if it may be the cause of a first difference."""
    restorable: bool = False
    """True if a checkpoint can hold what it decides."""
    evidence = RUNS

    def test(self, divergence: Difference, plain: Sequence[Trial], run: RunWith) -> Shown | None:
        """Tests the hypothesis; None if the runs do not confirm it. `plain` are those without any change."""
        tested = _Tested(divergence, list(plain))
        for value in self.values:
            first = run(value)
            if not (tested.add(first) and tested.add(run(again(value, 2), first))):
                return None
            if tested.outcomes > 1:
                break
        else:
            return None
        while tested.chance > LIKELY:
            value = min(tested.groups, key=lambda one: len(tested.groups[one]))
            count = len(tested.groups[value]) + 1
            first = tested.groups[value][0]
            if count > MOST or not tested.add(run(again(value, count), first), value):
                return None
        until = f" until step {tested.later.step}" if tested.later else ""
        each = [f"{len(runs)} runs with {value.label} are the same{until}" for value, runs in tested.groups.items()]
        later = f"; what differs from step {tested.later.step} on has another cause, too" if tested.later else ""
        text = f"{self.cause}: {', '.join(each)}, and one value's runs are not those of another; {self.remedy}{later}"
        return Shown(text, tested.later is None)

    def is_refuted(self, divergence: Difference, made: Callable[[Change], Trial | None]) -> bool:
        """True if two runs with one value were made, and differ where two baseline runs do, or before."""
        for value in self.values:
            a, b = made(value), made(again(value, 2))
            difference = first_difference(a.record, b.record, False) if a and b and a.record and b.record else None
            if difference and difference.step is not None and divergence.step is not None:
                return _place(difference) <= _place(divergence)
        return False


@dataclass(frozen=True)
class Clock(Hypothesis):
    """A test of the number of steps, which no value makes equal: the faster time runs, the fewer they are."""

    def test(self, divergence: Difference, plain: Sequence[Trial], run: RunWith) -> Shown | None:
        """Tests that each faster clock at least halves the number of steps, twice; None if not."""
        lengths = [[_steps(trial) for trial in plain]]
        for value in self.values:
            lengths.append([_steps(run(value)), _steps(run(again(value, 2)))])
            if not 0 < max(lengths[-1]) <= min(lengths[-2]) / 2:
                return None
        each = ", ".join(
            f"{' and '.join(map(str, steps))} with {value.label}"
            for value, steps in zip(self.values, lengths[1:], strict=True)
        )
        plainly = " and ".join(map(str, lengths[0]))
        return Shown(f"{self.cause}: {plainly} steps, {each}; {self.remedy}", True)


@dataclass(frozen=True)
class Race(Hypothesis):
    """A test by delays, where there is something to slow: what comes first is then the same in each run."""

    def test(self, divergence: Difference, plain: Sequence[Trial], run: RunWith) -> Shown | None:
        """As Hypothesis; None where nothing was slowed."""
        return super().test(divergence, plain, run) if run(self.values[0]).slowed else None


@dataclass(frozen=True)
class SharedDraws(Hypothesis):
    """A test by generators of their own, where threads draw from one that they share."""

    def test(self, divergence: Difference, plain: Sequence[Trial], run: RunWith) -> Shown | None:
        """As Hypothesis, with the names of the generators; None where no thread drew."""
        drawn = run(self.values[0]).changed
        if not drawn:
            return None
        named = replace(self, cause=f"{self.cause} ({listed(drawn)})")
        return super(SharedDraws, named).test(divergence, plain, run)


@dataclass(frozen=True)
class FirstRun(Hypothesis):
    """A test of what the first run left, and all others found: they are the same, and so are those that find nothing."""

    def test(self, divergence: Difference, plain: Sequence[Trial], run: RunWith) -> Shown | None:
        """None unless two more runs are as the second, and two with emptied caches as the first, and leave a file."""
        first, second = plain
        (emptied,) = self.values
        left: list[str] = []
        for count, cold in enumerate((emptied, again(emptied, 2)), 2):
            if differ(second, run(again(second.change, count), second)):
                return None
            found = run(cold, first)
            left = found.left
            if not left or differ(first, found):
                return None
        runs = "runs 2, 3 and 4 are the same, and so are run 1 and two with emptied caches"
        return Shown(f"{self.cause}: {listed(left)}; {runs}; {self.remedy}", True)


@dataclass
class _Tested:
    """Runs, by the value that they had."""

    divergence: Difference
    plain: list[Trial]
    groups: dict[Change, list[Trial]] = field(default_factory=dict)
    later: Difference | None = None
    """The first difference between runs with one value, later than that of two baseline runs: by another cause."""

    def add(self, trial: Trial, value: Change | None = None) -> bool:
        """Adds a run; True if it is the same as the others with its value."""
        value = value or next((one for one in self.groups if trial.change.environment == one.environment), trial.change)
        group = self.groups.setdefault(value, [])
        group.append(trial)
        return trial.record is not None and self._is_same(group[0], trial)

    def _is_same(self, a: Trial, b: Trial) -> bool:
        """True if two runs with one value differ nowhere, or later than two baseline runs; keeps the first place."""
        difference = self._difference(a, b)
        if difference is None:
            return True
        if not self._is_after(difference, self.divergence):
            return False
        if self.later is None or _place(difference) < _place(self.later):
            self.later = difference
        return True

    def _alike(self, a: Trial, b: Trial) -> bool:
        """True if runs with any values do not differ, or only where runs with one value do."""
        difference = self._difference(a, b)
        if difference is None or self.later is None or difference.step is None:
            return difference is None
        return _place(difference) >= _place(self.later)

    def _difference(self, a: Trial, b: Trial) -> Difference | None:
        """The first difference that is of the kind of that of two baseline runs, or comes before it."""
        if a is b:
            return None
        difference = first_difference(a.record, b.record, False) if a.record and b.record else self.divergence
        return difference if difference and _kind(difference) <= _kind(self.divergence) else None

    @staticmethod
    def _is_after(difference: Difference, divergence: Difference) -> bool:
        seen = divergence.step is not None and difference.step is not None
        return seen and _place(difference) > _place(divergence)

    @property
    def outcomes(self) -> int:
        """The number of different outcomes of the values."""
        return len(self._counts([group[0] for group in self.groups.values()]))

    @property
    def chance(self) -> float:
        """The probability that each value has one outcome, if the outcomes fell to the runs by chance."""
        runs = [*self.plain, *(trial for group in self.groups.values() for trial in group)]
        return chance(self._counts(runs), [len(group) for group in self.groups.values()])

    def _counts(self, trials: Sequence[Trial]) -> list[int]:
        """The number of runs with each outcome."""
        kinds: list[list[Trial]] = []
        for trial in trials:
            kind = next((kind for kind in kinds if self._alike(kind[0], trial)), None)
            if kind is None:
                kinds.append([trial])
            else:
                kind.append(trial)
        return [len(kind) for kind in kinds]


def chance(counts: Sequence[int], groups: Sequence[int]) -> float:
    """The share of all ways to deal outcomes to runs in which each group of runs gets only one outcome.

    `counts`: how often each outcome occurs in all runs; `groups`: the size of each group.
    """
    if not groups:
        return 1.0
    size, *others = groups
    total = 0.0
    for index, count in enumerate(counts):
        if count >= size:
            left = [*counts[:index], count - size, *counts[index + 1 :]]
            total += comb(count, size) / comb(sum(counts), size) * chance(left, others)
    return total


def again(change: Change, count: int) -> Change:
    """A change for one more run like it."""
    return replace(change, label=f"{change.label}, run {count}")


def differ(a: Trial, b: Trial) -> bool:
    """True if two runs differ, or one of them failed."""
    return a.record is None or b.record is None or first_difference(a.record, b.record, False) is not None


def _kind(difference: Difference) -> int:
    """A sort key: steps, then metrics, then outputs."""
    return (METRICS, OUTPUTS).index(difference.channel) + 1 if difference.channel in (METRICS, OUTPUTS) else 0


def _place(difference: Difference) -> tuple[int, int]:
    """A sort key: the step, then the channel in the order of cause."""
    return difference.step or 0, CHANNELS.index(difference.channel)


def _steps(trial: Trial) -> int:
    return trial.record.steps if trial.record else 0
