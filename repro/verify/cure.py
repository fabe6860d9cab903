"""Remedies tried: the smallest set with which a command gives the same bits.

A set is a cure where runs with it are equal more than once, and runs without it are not. Where those without it differ by
chance, equal runs may be chance, too: so many are made that this happens in less than one case in twenty.
"""

import logging
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from repro.compare import incomplete
from repro.compare.difference import Difference, first_difference
from repro.compare.smallest import smallest
from repro.record.injection import Portable
from repro.record.record import OUTPUTS, Record, read
from repro.text import counted
from repro.verify.answers import Answer
from repro.verify.command import OwnCommand
from repro.verify.command_questions import COMMAND_QUESTIONS
from repro.verify.judgment import record_of
from repro.verify.questions import BASELINE, DIFFERS, Change, Question
from repro.verify.remedies import Remedy, environment, known
from repro.verify.trial import Trial, run_name

log = logging.getLogger(__name__)

CHANCE = 0.05  # that runs without a remedy are equal as often as those with it were
PRICED = 2  # runs with the cure, and as many without in turn with them, that are timed
AGAIN = 3  # runs without a remedy that are compared with the baseline
REPEATS = next(question for question in COMMAND_QUESTIONS if question.repeats)


@dataclass
class Attempt:
    """The outcome of the runs with a set of remedies."""

    remedies: tuple[Remedy, ...]
    runs: int = 0
    equal: bool = False
    failed: str | None = None
    """The error of a run."""
    seconds: float | None = None
    """The shortest whole run under the baseline's conditions."""
    first: Record | None = None
    """The run that the others are compared with."""
    outputs: list[str] = field(default_factory=list)
    """Files that still differ, though all steps are the same."""

    @property
    def name(self) -> str:
        return " + ".join(remedy.name for remedy in self.remedies)

    @property
    def result(self) -> str:
        """The outcome in words."""
        if self.failed:
            return f"fails: {self.failed}"
        return f"same in {counted(self.runs, 'run')}" if self.equal else f"differs in run {self.runs}"


@dataclass
class Cure:
    """The attempts for one question, and the cure, if there is one."""

    question: str
    attempts: list[Attempt] = field(default_factory=list)
    found: Attempt | None = None
    price: tuple[float, float] | None = None
    """The seconds of a run with the cure, and of one without, made in turn."""
    unequal: tuple[int, int] = (0, 0)
    """The number of runs without a remedy that differ, and the number of all."""
    hindrance: str | None = None
    """The reason that nothing was tried."""

    def as_json(self) -> dict[str, Any]:
        """The cure as `verify --json` writes it."""
        cure = self.found
        return {
            "question": self.question,
            "cure": [remedy.name for remedy in cure.remedies] if cure else None,
            "lines": lines(cure.remedies) if cure else [],
            "seconds": self.price[0] if self.price else None,
            "seconds_without": self.price[1] if self.price else None,
            "tried": [{"remedies": one.name, "result": one.result, "seconds": one.seconds} for one in self.attempts],
            "why_not": self.hindrance,
        }


def lines(remedies: Sequence[Remedy]) -> list[str]:
    """The lines that a user adds for a set."""
    return [line for remedy in remedies for line in remedy.lines]


def cures(own: OwnCommand, answers: Sequence[Answer], trials: dict[str, Trial]) -> list[Cure]:
    """For each answer that differs, and for two baseline runs that do; `trials`: those that the answers rest on."""
    names = {answer.question.name for answer in answers if answer.answer == DIFFERS and not answer.question.control}
    differing = [question for question in own.questions if question.name in names]
    if own.divergence or own.volatile:
        differing = [REPEATS, *(question for question in differing if not question.repeats)]
    result = []
    for question in differing:
        search = CureSearch(own, question, trials)
        if search.remedies:
            result.append(search())
    return result


@dataclass
class CureSearch:
    """The search for the cure of one question."""

    own: OwnCommand
    question: Question
    trials: dict[str, Trial]

    def __post_init__(self) -> None:
        self.baseline = record_of(self.trials[run_name(BASELINE)])
        if self.own.volatile and self.question.repeats:
            self.baseline = read(self.baseline.path)  # with the files that other answers leave out
        frameworks = {name for process in self.baseline.processes for name in process.about.frameworks}
        self.remedies = [remedy for remedy in known(frameworks) if self._applies(remedy)]
        self.conditions = [BASELINE, *(() if self.question.repeats else self.question.possible_changes)]
        self.cure = Cure(self.question.name)
        self.attempts: dict[frozenset[str], Attempt] = {}
        self.needed = 2 * len(self.conditions)

    def __call__(self) -> Cure:
        """Makes the runs."""
        if self.own.went_on:
            self.cure.hindrance = "the second run went on from what the first had left"
            return self.cure
        most, names = AGAIN + len(self.remedies) * self.needed, ", ".join(remedy.name for remedy in self.remedies)
        seconds = self.trials[run_name(BASELINE)].seconds
        log.info("--cure, %s: about %d runs, of about %.0f s each: %s", self.question.name, most, seconds, names)
        self._repeat_without()
        if not self.cure.hindrance and (attempt := self._found()) and self._priced(attempt):
            self.cure.found = attempt
        return self.cure

    def _applies(self, remedy: Remedy) -> bool:
        if remedy.portable and self.own.command.portable:
            return False
        set_already = remedy.variables and all(os.environ.get(name) == value for name, value in remedy.variables)
        return self.question.name in remedy.questions and not (set_already and not remedy.injected)

    def _found(self) -> Attempt | None:
        """The cheapest remedy that is a cure alone, or else the smallest set; portable numerics come last."""
        own = self.own.divergence or self.own.volatile
        channel = own.channel if own and self.question.repeats else None
        usual = [remedy for remedy in self.remedies if not remedy.portable]
        likely = [remedy for remedy in usual if channel is None or channel in remedy.channels]
        for tier in (likely, [remedy for remedy in usual if remedy not in likely]):
            alone = [attempt for remedy in tier if (attempt := self._attempt([remedy])).equal]
            if alone:
                return min(alone, key=lambda attempt: attempt.seconds or math.inf)
        together = [remedy for remedy in usual if not self._attempt([remedy]).failed]
        if len(together) > 1 and self._attempt(together).equal:
            return self._attempt(smallest(together, lambda these: self._attempt(these).equal))
        last = [self._attempt([remedy]) for remedy in self.remedies if remedy.portable]
        return next((attempt for attempt in last if attempt.equal), None)

    # --- runs -------------------------------------------------------------------------------------------------------

    def _repeat_without(self) -> None:
        """Counts how often runs without a remedy differ: the number of equal runs that a cure needs follows from it."""
        if self.question.repeats:
            condition, again = BASELINE, AGAIN - 1
        else:
            condition, again = self._differing(), 1
        runs = [self._run(condition, [], number, self.baseline) for number in range(1, again + 1)]
        unequal = 1 + sum(self._difference(self.baseline, trial) is not None for trial in runs)
        self.cure.unequal = unequal, again + 1
        if self.question.repeats:
            chance = (again + 2 - unequal) / (again + 3)  # that a run is equal: Laplace's rule of succession
            self.needed = 1 + math.ceil(math.log(CHANCE) / math.log(chance))
        elif unequal <= again:
            self.cure.hindrance = f"{condition.label}: run again, it does not differ, so it does by chance; a cure would be one by chance, too"

    def _differing(self) -> Change:
        """The change of the question whose run differs."""
        for change in self.question.possible_changes:
            trial = self.trials.get(run_name(change))
            if trial and not trial.error and self._difference(self.baseline, trial):
                return change
        return self.question.possible_changes[0]

    def _attempt(self, remedies: Sequence[Remedy]) -> Attempt:
        """The runs with a set of remedies, until one differs; made once."""
        key = frozenset(remedy.name for remedy in remedies)
        if key in self.attempts:
            return self.attempts[key]
        attempt = self.attempts[key] = Attempt(tuple(remedies))
        self.cure.attempts.append(attempt)
        while attempt.runs < self.needed and not attempt.failed:
            condition = self.conditions[attempt.runs % len(self.conditions)]
            attempt.runs += 1
            trial = self._run(condition, remedies, attempt.runs, attempt.first)
            if not self._is_equal(attempt, trial):
                break
            if condition == BASELINE:
                attempt.seconds = min(trial.seconds, attempt.seconds or trial.seconds)
            attempt.equal = attempt.runs == self.needed
        log.info("  %s: %s", attempt.name, attempt.result)
        return attempt

    def _is_equal(self, attempt: Attempt, trial: Trial) -> bool:
        """True if one more run has the bits of the first one."""
        attempt.failed = trial.error or incomplete.unseen(record_of(trial))
        if attempt.failed or (attempt.first and self._difference(attempt.first, trial)):
            return False
        if attempt.first:
            ours, theirs = attempt.first.outputs, record_of(trial).outputs
            attempt.outputs = [name for name in sorted(ours | theirs) if ours.get(name) != theirs.get(name)]
        attempt.first = attempt.first or record_of(trial)
        return True

    def _priced(self, attempt: Attempt) -> bool:
        """Measures the cost by two more runs, alternating with two without; True if they are equal, too."""
        with_it, without = [], []
        for number in range(1, PRICED + 1):
            plain = self._run(BASELINE, [], number, name="price")
            cured = self._run(BASELINE, attempt.remedies, number, name="price")
            attempt.runs += 1
            attempt.equal = self._is_equal(attempt, cured)
            if not attempt.equal:
                return False
            if self.question.repeats:
                unequal, of = self.cure.unequal
                self.cure.unequal = unequal + (self._difference(self.baseline, plain) is not None), of + 1
            with_it.append(cured.seconds)
            without.append(plain.seconds)
        self.cure.price = min(with_it), min(without)
        return True

    def _run(
        self,
        condition: Change,
        remedies: Sequence[Remedy],
        number: int,
        against: Record | None = None,
        name: str = "",
    ) -> Trial:
        """A run; it need not go on once it differs from `against`."""
        words = [condition.label, *(remedy.name for remedy in remedies), f"{self.question.name} {name} {number}"]
        change = replace(condition, label=", ".join(words), environment=condition.environment + environment(remedies))
        trials = self.own.trials
        if any(remedy.portable for remedy in remedies):
            trials = replace(trials, command=replace(self.own.command, portable=Portable()))
        trial = trials.run(change, self.own.stops_of(change), against if self.own.may_end_early else None)
        if self.own.volatile and not self.question.repeats:
            trial.leave_out(self.own.volatile.names)
        if self.own.unsteady and not self.question.repeats:
            trial.leave_out_metrics(self.own.unsteady.names)
        return trial

    def _difference(self, first: Record, trial: Trial) -> Difference | None:
        """The first difference of a run; outputs count only if nothing but outputs differed."""
        if trial.divergence or trial.error:
            return trial.divergence
        a, b = first, record_of(trial)
        if self.own.divergence and self.own.divergence.channel != OUTPUTS:
            metrics = self.own.divergence.measured is not None
            a, b = (replace(one.without_files(), metrics=one.metrics if metrics else []) for one in (a, b))
        return first_difference(a, b, False)
