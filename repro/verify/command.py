"""A command as the subject of questions.

Where two baseline runs differ, every other question is inconclusive.
"""

import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from repro.compare import files, incomplete, reasons
from repro.compare.alignment import align
from repro.compare.comparison import known
from repro.compare.difference import Difference, first_difference, race
from repro.errors import UsageError
from repro.record.record import OUTPUTS
from repro.record.warnings import RecordWarning, warnings
from repro.text import RUN, listed, slug
from repro.verify import baselines, dependence
from repro.verify.answers import Answer
from repro.verify.command_questions import COMMAND_QUESTIONS
from repro.verify.command_runs import Trials
from repro.verify.coverage import borders, has_windows
from repro.verify.folders import without_folders
from repro.verify.hypotheses import HYPOTHESES, Hypothesis, again
from repro.verify.judgment import Clocked, Filled, Listed, Outputs, Slowed, StepJudgment, Varied, record_of
from repro.verify.questions import BASELINE, CANNOT_TELL, DIFFERS, FULLY_HASHED, REPEAT, SAME, Change, Question
from repro.verify.results import COMMAND, Results, Settings
from repro.verify.resumption import TWO_DIFFER, OwnSteps, Resumed
from repro.verify.stops import Stop, targets, with_stops
from repro.verify.trial import Command, Trial
from repro.verify.verification import Needed, NotMadeError, made

log = logging.getLogger(__name__)

NEEDS = {
    "resume": "--resume names no command that goes on from a checkpoint",
    "image": "--image names no image",
    "seed_option": "--seed-option names no option for the seed, as in --seed-option '--seed={}'",
}  # by the option, why a question is skipped without it

JUDGMENTS: dict[str, type[StepJudgment]] = {
    "steps": StepJudgment,
    "outputs": Outputs,
    "varied": Varied,
    "filled": Filled,
    "slowed": Slowed,
    "listed": Listed,
    "clocked": Clocked,
    "resumed": Resumed,
}  # by what a question compares

NO_STEP = "no step was seen, so the command cannot be stopped at one"

RunNamed = Callable[[str], Trial]


@dataclass
class OwnCommand:
    """A command, and what is known of it so far."""

    command: Command
    names: Sequence[str]
    """The names of the questions."""
    folder: Path
    """The folder of its runs."""
    varied: Sequence[Question] = ()
    """The questions about options of the command."""
    stops: int | None = None
    """The number of points at which a command is stopped that is resumed; one of each question's own where it is None."""
    shared: list[str] = field(default_factory=list)
    """Warnings about runs that wrote to one place."""
    notes: list[str] = field(default_factory=list)
    """Notes to print beside the answers."""
    baseline: Trial | None = None
    repeat: Trial | None = None
    divergence: Difference | None = None
    """The first difference of two baseline runs."""
    volatile: Difference | None = None
    """Files that differ from run to run though all steps are the same: all other answers do without them."""
    names_vary: bool = False
    """True if some outputs have other names in each run, as TensorBoard's: then no run is expected to write them."""
    why: str | None = None
    """The reason that two baseline runs differ."""
    cause: Hypothesis | None = None
    """The only cause of that, where runs have shown it."""
    further: list[Change] = field(default_factory=list)
    """Changes of runs that test a cause."""

    def __post_init__(self) -> None:
        self.trials = Trials(self.command, self.folder)

    @property
    def questions(self) -> list[Question]:
        """The questions, in the order in which they are asked."""
        asked = (question for question in COMMAND_QUESTIONS if question.name in self.names)
        return [*(with_stops(question, self.stops) for question in asked), *self.varied]

    @property
    def ends(self) -> tuple[int, str | None]:
        """The number of steps of the baseline, and its fingerprint."""
        return (record_of(self.baseline).steps, self.baseline.fingerprint) if self.baseline else (0, None)

    @property
    def warnings(self) -> list[RecordWarning]:
        """Warnings about the baseline."""
        return warnings(self.baseline.record) if self.baseline and self.baseline.record else []

    # --- runs -------------------------------------------------------------------------------------------------------

    def needed(self, question: Question) -> Needed:
        """The two baseline runs, and, where they are the same, those of the question."""
        changes = [BASELINE, REPEAT]
        if self.divergence is not None and question.resumes and not self._missing(question):
            changes += question.possible_changes
        elif self.divergence is None and not self._missing(question):
            changes += [self._compared_with(question), *question.possible_changes]
        changes += self.further
        whole = {change for change in changes if change in self.further or question.compared != "steps"}
        return {run_name(change): partial(self._carry_out, change, change in whole) for change in changes}

    def _compared_with(self, question: Question) -> Change:
        return FULLY_HASHED if question.resumes and self.command.every > 1 else question.base

    def _missing(self, question: Question) -> str | None:
        """The reason that a question is skipped here."""
        if question.needs and getattr(self.command, question.needs) is None:
            return NEEDS[question.needs]
        return question.obstacle()

    def _carry_out(self, change: Change, whole: bool) -> Trial:
        """A run. ReproError where the command fails, or nothing of it is seen, without any change."""
        early = self.divergence is None and self.repeat is not None and change != FULLY_HASHED and not whole
        baseline = record_of(self.baseline) if self.baseline and early and self.may_end_early else None
        if change.stops and self.baseline:
            trial = self.trials.resumed(change, self.stops_of(change), record_of(self.baseline))
        else:
            trial = self.trials.run(change, (), baseline)
        if change in (BASELINE, REPEAT):
            baselines.check_observed(trial, self.baseline)
        if change == BASELINE:
            self.baseline = trial
        elif change == REPEAT and self.baseline:
            self.repeat = trial
            self._compare_baselines(self.baseline, trial)
            self.shared += baselines.shared_files(self.baseline, trial, self.went_on)
            lost = incomplete.not_loaded(record_of(self.baseline))
            raced = race(record_of(self.baseline)) if self.divergence is None else None
            seen = [*record_of(self.baseline).content.notes, *(note for note in (lost, raced) if note)]
            seen += [f"portable numerics: {self.baseline.computed}"] if self.baseline.computed else []
            shared = [] if self.divergence else self.shared  # what is in the reason is no note
            self.notes = [*shared, *seen, *self.notes]
        elif self.volatile and self.baseline:
            unknown = [name for name in trial.hashes if name not in self.baseline.hashes]
            trial.leave_out(unknown if self.names_vary else self.volatile.names)
        return trial

    def stops_of(self, change: Change) -> list[Stop]:
        """The points at which a run is stopped, by what the baseline shows."""
        processes = record_of(self.baseline).processes if self.baseline else []
        begun = filter(None, map(borders, processes))
        return targets(change, self.ends[0], next(begun, []), any(map(has_windows, processes)))

    @property
    def may_end_early(self) -> bool:
        """True if a run need not go on once it differs.

        The next run may read what is half done, unless each run has its own folder and writes nowhere else.
        """
        own_folder = any(RUN in word for word in self.command.words)
        changed = any(trial.changed_files for trial in (self.baseline, self.repeat) if trial)
        return own_folder and not changed and not self.command.keep

    def _compare_baselines(self, baseline: Trial, repeat: Trial) -> None:
        difference = first_difference(record_of(baseline), record_of(repeat), False)
        self.notes += files.compare(record_of(baseline), record_of(repeat)).notes
        if difference is None or difference.channel != OUTPUTS or not record_of(baseline).steps:
            self.divergence = difference
            return
        self.volatile = difference
        self.names_vary = any((name in baseline.hashes) != (name in repeat.hashes) for name in difference.names)
        for trial in (baseline, repeat):
            trial.leave_out(difference.names)
        names = listed(difference.names)
        differ, them = ("differs", "it") if len(difference.names) == 1 else ("differ", "them")
        self.notes.append(f"{names} {differ} from run to run; all other answers do without {them}, and rest on steps")
        log.info("equal but for %s; without %s, both have %s", names, them, (repeat.fingerprint or "")[:23])

    @property
    def went_on(self) -> bool:
        """True if the second run continued from what the first left, or had nothing to do."""
        if self.divergence is None or self.divergence.pair is None:
            return False
        pair = self.divergence.pair
        return not pair.b.steps or align(pair.a, pair.b).after > 0

    # --- answers ----------------------------------------------------------------------------------------------------

    def answer(self, question: Question, run: RunNamed) -> Answer:
        """The answer that follows from the runs of a question."""
        baseline, repeat = run(run_name(BASELINE)), run(run_name(REPEAT))
        if self.divergence:
            return self._divergent(question, self.divergence, baseline, repeat, run)
        answer = self.skipped(question, self._missing(question) or "")
        if answer.reason:
            return answer
        if question.resumes and not record_of(baseline).steps:
            lost = incomplete.not_loaded(record_of(baseline))
            answer.answer, answer.reason = CANNOT_TELL, lost or NO_STEP
            return answer
        if question.repeats and self.volatile:
            answer.answer, answer.says = DIFFERS, str(reasons.reason(self.volatile))
            answer.runs = [run_name(BASELINE), run_name(REPEAT)]
            answer.comparison = known(record_of(baseline), record_of(repeat), self.volatile)
            return answer
        compared = run(run_name(self._compared_with(question)))
        judgment = JUDGMENTS[question.compared](question, compared, repeat, self.shared)
        return self._judged(answer, judgment, run)

    def _judged(self, answer: Answer, judgment: StepJudgment, run: RunNamed) -> Answer:
        """The first run that differs decides; a failed one leaves the question open, and one that was not made."""
        outcomes, missing = made(map(run_name, judgment.question.possible_changes), run)
        trials = [*outcomes.values()]
        done = judgment.trials = [trial for trial in trials if not trial.error]
        answer.runs = [run_name(trial.change) for trial in judgment.compared(done)]
        obstacles: list[str] = []
        for trial in done:
            try:
                obstacle = judgment.obstacle(trial)
                difference = None if obstacle else judgment.difference(trial)
            except UsageError as error:
                obstacle, difference = str(error).removeprefix("compare: "), None
            obstacles += [obstacle] if obstacle else []
            if difference:
                answer.answer, shown = DIFFERS, None
                with contextlib.suppress(NotMadeError):
                    shown = self._tested(judgment, trial, difference, run)
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
        return answer

    def _tested(self, judgment: StepJudgment, trial: Trial, difference: Difference, run: RunNamed) -> str | None:
        """The result of one more run: a generator decides; or, with the same change again, chance does."""
        further = partial(self._further, run)
        if judgment.question.resumes:
            return None if self.divergence else dependence.said(difference, record_of(judgment.baseline), further)
        if judgment.question.control:
            return None
        repeat = further(again(trial.change, 2))
        result = None if repeat.error else replace(judgment, baseline=trial).difference(repeat)
        cut = trial.divergence is not None and result and (result.lengths or result.channel == OUTPUTS)
        if not result or cut:  # a run that was ended at its first difference is equal as far as it came
            return None
        return f"two runs with one change ({trial.change.label}) differ from each other, too: chance decides, with that change at least"

    def _divergent(
        self, question: Question, divergence: Difference, baseline: Trial, repeat: Trial, run: RunNamed
    ) -> Answer:
        """Two baseline runs differ: the question that repeats is answered, all others are inconclusive."""
        if self.why is None:
            self.why = self._why(divergence, baseline, repeat, run)
        answer = self.skipped(question, self._missing(question) or "")
        if answer.reason:
            return answer
        if question.resumes and record_of(baseline).steps and not self.went_on:
            decided = self.cause is not None and self.cause.restorable
            own = OwnSteps(question, baseline, repeat, self.shared, divergence=divergence, decided=decided)
            return self._judged(answer, own, run)
        if question.repeats:
            answer.answer, answer.says, answer.reason = DIFFERS, self.why, None
            answer.comparison = known(record_of(baseline), record_of(repeat), divergence)
            answer.runs = [run_name(BASELINE), run_name(REPEAT)]
        else:
            repeated = any(question.repeats for question in self.questions)
            answer.answer = CANNOT_TELL
            answer.reason = TWO_DIFFER + ("" if repeated else f": {self.why}")
        return answer

    def _why(self, divergence: Difference, baseline: Trial, repeat: Trial, run: RunNamed) -> str:
        """The cause that further runs show, or else what the hashes do."""
        raced = divergence.among is not None and divergence.among.overtaken is not None
        suiting = [] if raced or self.went_on else [one for one in HYPOTHESES if one.suits(divergence)]
        if suiting:
            log.info("two baseline runs differ; further runs test why: %s", ", ".join(one.name for one in suiting))
        with contextlib.suppress(NotMadeError):
            for hypothesis in suiting:
                shown = hypothesis.test(divergence, [baseline, repeat], partial(self._further, run))
                if shown:
                    self.cause = hypothesis if shown.alone else None
                    return "; ".join([shown.text, *self.shared])
        return "; ".join([str(reasons.reason(divergence)), *self.shared])

    def _further(self, run: RunNamed, change: Change) -> Trial:
        """A run that tests a cause."""
        if change not in self.further:
            self.further.append(change)
        return run(run_name(change))

    def skipped(self, question: Question, reason: str) -> Answer:
        """The answer to a question that is not asked."""
        portable = self.command.portable is not None
        return Answer(question, COMMAND, self.command.typed, reason=reason, portable=portable)

    # --- results ----------------------------------------------------------------------------------------------------

    def settings(self) -> Settings:
        """The settings as results.json has them."""
        return Settings(
            steps=self.ends[0],
            questions=[question.name for question in self.questions],
            frameworks=[COMMAND],
            numerics=[self.command.typed],
            overrides=[],
        )


def run_name(change: Change) -> str:
    """The name of a run in results.json."""
    return f"{COMMAND}/{slug(change.label)}"


def without_local_folders(results: Results) -> Results:
    """Results in which the folder that the command was started in is a dot, and the home ~."""
    moved: Results = without_folders(results, {Path.cwd(): ".", Path.home(): "~"})
    return moved
