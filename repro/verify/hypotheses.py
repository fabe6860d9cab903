"""Causes that further runs test.

Where two baseline runs differ, each hypothesis holds something at one value, and then at another one: if it is the cause,
runs with one value are the same, and runs with two values differ. One run that says otherwise refutes it.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import comb

from repro.compare.difference import Difference, first_difference
from repro.compare.metrics import METRICS
from repro.compare.reasons.case import RUNS
from repro.record.lines import CHANNELS, STARTS
from repro.record.record import OUTPUTS
from repro.verify.command_questions import UNCACHED
from repro.verify.questions import Change
from repro.verify.trial import Trial

MOST = 5  # runs with one value
LIKELY = 0.01  # the chance that runs come out so though nothing decides but chance: below it, a hypothesis holds

RunWith = Callable[[Change], Trial]


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
            if not (tested.add(run(value)) and tested.add(run(again(value, 2)))):
                return None
            if tested.outcomes > 1:
                break
        else:
            return None
        while tested.chance > LIKELY:
            value = min(tested.groups, key=lambda one: len(tested.groups[one]))
            count = len(tested.groups[value]) + 1
            if count > MOST or not tested.add(run(again(value, count)), value):
                return None
        until = f" until step {tested.later.step}" if tested.later else ""
        each = [f"{len(runs)} runs with {value.label} are the same{until}" for value, runs in tested.groups.items()]
        later = f"; what differs from step {tested.later.step} on has another cause, too" if tested.later else ""
        text = f"{self.cause}: {', '.join(each)}, and one value's runs are not those of another; {self.remedy}{later}"
        return Shown(text, tested.later is None)


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
        return trial.record is not None and self._alike(group[0], trial)

    def _alike(self, a: Trial, b: Trial) -> bool:
        if a is b:
            return True
        difference = first_difference(a.record, b.record, False) if a.record and b.record else self.divergence
        if difference is None or _kind(difference) > _kind(self.divergence):
            return True
        later = (
            self.divergence.step is not None
            and difference.step is not None
            and _place(difference) > _place(self.divergence)
        )
        self.later = difference if later else self.later
        return later

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


def _kind(difference: Difference) -> int:
    """A sort key: steps, then metrics, then outputs."""
    return (METRICS, OUTPUTS).index(difference.channel) + 1 if difference.channel in (METRICS, OUTPUTS) else 0


def _place(difference: Difference) -> tuple[int, int]:
    """A sort key: the step, then the channel in the order of cause."""
    return difference.step or 0, CHANNELS.index(difference.channel)


def _steps(trial: Trial) -> int:
    return trial.record.steps if trial.record else 0


def _values(name: str, values: Sequence[str], label: str, more: tuple[tuple[str, str], ...] = ()) -> tuple[Change, ...]:
    return tuple(Change(label.format(value), ((name, value), *more)) for value in values)


def _is_length(divergence: Difference) -> bool:
    return bool(divergence.lengths) and min(divergence.lengths or (0,)) > 0


def _draws(divergence: Difference) -> bool:
    """True if drawn numbers may decide: they differ first, or may be drawn in what is not seen of a step."""
    pair, step = divergence.pair, divergence.step or 0
    unseen = pair is not None and any(pair.hashes(step, channel) is None for channel in ("batch", "gradients"))
    return not _is_length(divergence) and (divergence.channel in ("generator", "batch", STARTS, METRICS) or unseen)


def _is_late(divergence: Difference) -> bool:
    """True if the initial weights differ, and no generator does when the first step begins."""
    pair = divergence.pair
    seen = pair is not None and pair.hashes(0, "generator") is not None and not pair.differing(0, "generator")
    return divergence.channel == STARTS and seen


def _results(divergence: Difference) -> bool:
    return divergence.channel != "generator" and not _is_length(divergence)


SEEDS = _values("REPRO_CHANGES", ("seed=0", "seed=77", "seed=5"), "{} at the start")

HYPOTHESES: tuple[Hypothesis, ...] = (
    Hypothesis(
        "late seed",
        "the initial weights are drawn before a seed is set",
        "set the seeds before the model is made",
        SEEDS,
        _is_late,
        restorable=True,
    ),
    Hypothesis(
        "no seed",
        "no seed is set, or not before something is drawn",
        "set the seeds of Python, NumPy and the framework first of all",
        SEEDS,
        lambda divergence: _draws(divergence) and not _is_late(divergence),
        restorable=True,
    ),
    Hypothesis(
        "seed from the time",
        "a seed is taken from the time or from the system's entropy",
        "let an option of the command set it, and print it",
        _values(
            "REPRO_CHANGES",
            ("seed=0,origin=0", "seed=77,origin=77", "seed=5,origin=5"),
            "{} (time and entropy held)",
        ),
        _draws,
        restorable=True,
    ),
    Hypothesis(
        "order of a set",
        "the order of a set, or hash(), decides",
        "sort the set, or set PYTHONHASHSEED",
        _values("PYTHONHASHSEED", ("0", "77", "5", "123"), "PYTHONHASHSEED={}"),
        lambda divergence: _results(divergence) and "PYTHONHASHSEED" not in os.environ,
    ),
    Hypothesis(
        "uninitialized memory",
        "memory is read that nothing has set, such as that of torch.empty or numpy.empty",
        "set it before it is read",
        _values(
            "MALLOC_PERTURB_",
            ("195", "67", "90"),
            "MALLOC_PERTURB_={}",
            (UNCACHED,),
        ),
        _results,
    ),
    Clock(
        "limit of time",
        "the number of steps depends on the time that they take",
        "train for a number of steps",
        _values("REPRO_CHANGES", ("clock=4", "clock=16"), "{}"),
        _is_length,
    ),
)
"""In the order in which they are tested; the first that holds is the cause."""
