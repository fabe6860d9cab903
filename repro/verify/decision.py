"""Decision of a question, by its runs and by those that test why they differ."""

import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from repro.compare import reasons
from repro.compare.comparison import known
from repro.compare.difference import Difference
from repro.errors import UsageError
from repro.text import RUN
from repro.verify import batch_causes, dependence, power, scores
from repro.verify.answers import Answer
from repro.verify.batch_sizes import BatchSizes
from repro.verify.causes import HYPOTHESES
from repro.verify.command_questions import HASH_SEED, MOVED, OBJECTS_DECIDE
from repro.verify.hypotheses import Hypothesis, Race, RunWith, again, differ
from repro.verify.judgment import StepJudgment, record_of
from repro.verify.questions import CANNOT_TELL, DIFFERS, SAME, Change
from repro.verify.trial import Trial, run_name
from repro.verify.verification import NotMadeError, made

if TYPE_CHECKING:
    from repro.verify.command import OwnCommand

log = logging.getLogger(__name__)

ENOUGH = 6
"""Runs that are as the second one, whatever was changed, of which the first is unlike all."""
ONLY_THE_FIRST = "only the first run differs from {} later ones, whatever was changed in these: they found something that it left (a guess)"

OF_ANY_ORDER = ("another batch", "batches in another order")
"""Rules whose guesses are tested by runs."""
RACES = "threads, workers or ranks run beside the first thread, and which of them comes first may decide"
OTHERS = "a folder's listing, a file that changes, or a generator that cannot be seen may decide"

RunNamed = Callable[[str], Trial]


@dataclass
class Decision:
    """Answers about a command; `run` gives the outcome of a run by its name, and makes it first if need be."""

    own: "OwnCommand"
    run: RunNamed

    def judged(self, answer: Answer, judgment: StepJudgment) -> Answer:
        """The first run that differs decides; a failed one leaves the question open, and one that was not made."""
        outcomes, missing = made(map(run_name, judgment.question.possible_changes), self.run)
        trials = [*outcomes.values()]
        done = judgment.trials = [trial for trial in trials if not trial.error]
        answer.runs = [run_name(trial.change) for trial in judgment.compared(done)]
        obstacles: list[str] = []
        for trial in done:
            try:
                obstacle = judgment.obstacle(trial)
                difference = None if obstacle else self._steady(judgment, trial)
            except UsageError as error:
                obstacle, difference = str(error).removeprefix("compare: "), None
            obstacles += [obstacle] if obstacle else []
            if difference:
                answer.answer, shown = DIFFERS, None
                with contextlib.suppress(NotMadeError):
                    shown = self._tested(judgment, trial, difference)
                answer.says = judgment.meaning(trial, difference, shown)
                answer.comparison = known(*judgment.records(trial), difference)
                return answer
        if missing:
            raise missing
        answer.runs = [] if obstacles else answer.runs
        failed = [f"{trial.change.label}: {trial.error}" for trial in trials if trial.error]
        obstacles = obstacles[:1] or [why for why in (*failed, judgment.unseen(done)) if why]
        if obstacles:
            answer.answer, answer.reason = CANNOT_TELL, "; ".join(obstacles)
        else:
            answer.answer, answer.says = SAME, judgment.sameness(trials)
            self._measure_power(answer, judgment, trials)
        return answer

    def _measure_power(self, answer: Answer, judgment: StepJudgment, trials: Sequence[Trial]) -> None:
        """Plants faults in the resumed run of the first question about resuming that is *same*."""
        stopped_once = judgment.question.resumes and all(len(trial.change.stops) == 1 for trial in trials)
        if not (self.own.controls and stopped_once and self.own.divergence is None):
            return
        self.own.powerful = self.own.powerful or judgment.question.name
        if self.own.powerful == judgment.question.name:
            trial = trials[len(trials) // 2]
            planted = self._planted
            answer.power = power.measured(trial, record_of(judgment.baseline), self._writes_into_run_alone, planted)
            answer.says = f"{answer.says}{answer.power}"
            self.own.trials.controls = False

    @property
    def _writes_into_run_alone(self) -> bool:
        """True if no run is known to have written elsewhere: files of others may change beside it."""
        known = [trial for trial in (self.own.baseline, self.own.repeat) if trial]
        return any(RUN in word for word in self.own.command.words) and not any(trial.wrote for trial in known)

    def _planted(self, changes: Sequence[Change]) -> Iterator[Trial]:
        """Makes runs with a fault each, as long as the call goes on."""
        self.own.further |= dict.fromkeys(change for change in changes if change not in self.own.further)
        with contextlib.suppress(NotMadeError):
            for change in changes:
                yield self.run(run_name(change))

    def _steady(self, judgment: StepJudgment, trial: Trial) -> Difference | None:
        """The first difference of a run, without metrics that differ between two runs with its change, as what is logged after some seconds."""
        difference = judgment.difference(trial)
        while difference and scores.is_doubtful(difference) and not judgment.question.control:
            repeat = self._further(again(trial.change, 2))
            names = scores.varying(trial.record, repeat.record)
            if difference.measured and difference.measured.names not in names:
                break
            trial.leave_out_metrics(names)
            difference = judgment.difference(trial)
        return difference

    def _tested(self, judgment: StepJudgment, trial: Trial, difference: Difference) -> str | None:
        """The result of one more run: a generator decides; or, with the same change again, chance does."""
        further = self._further
        if judgment.question.resumes:
            return None if self.own.divergence else dependence.said(difference, record_of(judgment.baseline), further)
        if judgment.question.control:
            return None
        repeat = further(again(trial.change, 2))
        result = None if repeat.error else replace(judgment, baseline=trial).difference(repeat)
        cut = trial.divergence is not None and result and (result.lengths or result.step is None)
        if not result or cut:  # a run that was ended at its first difference is equal as far as it came
            if isinstance(judgment, BatchSizes):
                return None if record_of(trial).steps else batch_causes.said(judgment, trial, further)
            return self._of_objects(judgment, trial, further)
        return f"two runs with one change ({trial.change.label}) differ from each other, too: chance decides, with that change at least"

    def _of_objects(self, judgment: StepJudgment, trial: Trial, further: RunWith) -> str | None:
        """The meaning of a difference that comes from where objects lie, which was changed together with the hash seed."""
        if trial.change != MOVED:
            return None
        unmoved = further(HASH_SEED)
        return None if unmoved.error or judgment.difference(unmoved) else OBJECTS_DECIDE

    def why(self, divergence: Difference, baseline: Trial, repeat: Trial) -> str:
        """The cause that further runs show, or else what the hashes do."""
        raced = divergence.among is not None and divergence.among.overtaken is not None
        suiting = [] if raced or self.own.went_on else [one for one in HYPOTHESES if one.suits(divergence)]
        if suiting:
            log.info("two baseline runs differ; further runs test why: %s", ", ".join(one.name for one in suiting))
        with contextlib.suppress(NotMadeError):
            for hypothesis in suiting:
                shown = hypothesis.test(divergence, [baseline, repeat], self._further)
                if shown:
                    self.own.cause = hypothesis if shown.alone else None
                    return "; ".join([shown.text, *self.own.shared])
                if (later := self._like_the_second(repeat)) >= ENOUGH:
                    return "; ".join([ONLY_THE_FIRST.format(later + 1), *self.own.shared])
        return "; ".join([self._unexplained(divergence, suiting), *self._untested(suiting), *self.own.shared])

    def _untested(self, suiting: Sequence[Hypothesis]) -> list[str]:
        """The causes that could not be tested, as their first run failed, each with its error."""
        runs = ((one, self._made(one.values[0])) for one in suiting)
        return [f"{one.name} could not be tested: {trial.error}" for one, trial in runs if trial and trial.error]

    def _made(self, change: Change) -> Trial | None:
        """The further run with this change; None if there is none, as where no more runs were allowed."""
        with contextlib.suppress(NotMadeError):
            return self.run(run_name(change)) if change in self.own.further else None
        return None

    def _unexplained(self, divergence: Difference, suiting: Sequence[Hypothesis]) -> str:
        """The reason by the hashes where no run shows a cause: it names nothing that runs have refuted."""
        reason = reasons.reason(divergence)
        held = [one for one in suiting if type(one) is Hypothesis and one.is_refuted(divergence, self._made)]
        if not held or not reason.guess:
            return str(reason)
        labels = ", ".join(one.values[0].label for one in held)
        tried = f"two runs differ all the same with each of {labels}"
        if reason.rule not in OF_ANY_ORDER:
            return f"{reason}; {tried}"
        delayed = (self._made(one.values[0]) for one in suiting if isinstance(one, Race))
        races = any(trial.slowed for trial in delayed if trial)
        left = RACES if races else OTHERS
        return f"each run has other batches, though the generators that can be seen are equal, and {tried}: {left} (a guess)"

    def _like_the_second(self, repeat: Trial) -> int:
        """The number of further runs, if all of them that came to an end are as the second one, whatever was changed."""
        trials = [self.run(run_name(change)) for change in self.own.further]
        done = [trial for trial in trials if trial.record]
        return 0 if any(differ(repeat, trial) for trial in done) else len(done)

    def _further(self, change: Change, against: Trial | None = None) -> Trial:
        """A run that tests a cause; it may end where it first differs from `against`."""
        self.own.further.setdefault(change, against)
        return self.run(run_name(change))
