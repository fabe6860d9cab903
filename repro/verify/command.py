"""A command as the subject of questions.

Where two baseline runs differ, every other question is inconclusive.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from repro.compare import files, incomplete, reasons
from repro.compare.alignment import align
from repro.compare.comparison import known
from repro.compare.difference import Difference, first_difference, ignore_idle_generators, race
from repro.record.record import OUTPUTS
from repro.record.warnings import RecordWarning, warnings
from repro.text import RUN, listed
from repro.verify import baselines, scores
from repro.verify.alone import Alone
from repro.verify.answers import Answer
from repro.verify.batch_sizes import BatchSizes
from repro.verify.command_questions import COMMAND_QUESTIONS
from repro.verify.command_runs import Trials
from repro.verify.coverage import borders, has_windows
from repro.verify.decision import Decision, RunNamed
from repro.verify.folders import without_folders
from repro.verify.hypotheses import Hypothesis
from repro.verify.judgment import Clocked, Cold, Filled, Listed, Outputs, Slowed, StepJudgment, Varied, record_of
from repro.verify.questions import BASELINE, CANNOT_TELL, DIFFERS, FULLY_HASHED, REPEAT, Change, Question
from repro.verify.ranks import Ranks
from repro.verify.results import COMMAND, Results, Settings
from repro.verify.resumption import TWO_DIFFER, OwnSteps, Resumed
from repro.verify.stops import Stop, targets, with_stops
from repro.verify.trial import Command, Trial, run_name
from repro.verify.verification import Needed

log = logging.getLogger(__name__)

NEEDS = {
    "resume": "--resume names no command that goes on from a checkpoint",
    "image": "--image names no image",
    "alone": "--alone names no command that does one of its trainings alone",
    "seed_option": "--seed-option names no option for the seed, as in --seed-option '--seed={}'",
}  # by the option, why a question is skipped without it

JUDGMENTS: dict[str, type[StepJudgment]] = {
    "steps": StepJudgment,
    "outputs": Outputs,
    "varied": Varied,
    "batch": BatchSizes,
    "filled": Filled,
    "slowed": Slowed,
    "listed": Listed,
    "clocked": Clocked,
    "cold": Cold,
    "alone": Alone,
    "ranks": Ranks,
    "resumed": Resumed,
}  # by what a question compares

NO_STEP = "no step was seen, so the command cannot be stopped at one"

MORE = 20
"""Runs that test why others differ, at most."""


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
    controls: bool = True
    """True if faults are planted where a run that was stopped and resumed is the same."""
    shared: list[str] = field(default_factory=list)
    """Warnings about runs that wrote to one place."""
    notes: list[str] = field(default_factory=list)
    """Notes to print beside the answers."""
    baseline: Trial | None = None
    repeat: Trial | None = None
    fully_hashed: Trial | None = None
    """What a resumed command is compared with, where --every leaves steps of the baseline out."""
    divergence: Difference | None = None
    """The first difference of two baseline runs."""
    volatile: Difference | None = None
    """Files that differ from run to run though all steps are the same: all other answers do without them."""
    unsteady: scores.Unsteady | None = None
    """Metrics that differ from run to run: all other answers do without them."""
    names_vary: bool = False
    """True if some outputs have other names in each run, as TensorBoard's: then no run is expected to write them."""
    why: str | None = None
    """The reason that two baseline runs differ."""
    cause: Hypothesis | None = None
    """The only cause of that, where runs have shown it."""
    further: dict[Change, Trial | None] = field(default_factory=dict)
    """Changes of runs that test a cause, or have a planted fault, and the run at whose first difference each may end."""
    powerful: str | None = None
    """The question whose answer says which planted faults were seen."""

    def __post_init__(self) -> None:
        self.trials = Trials(self.command, self.folder, controls=self.controls)

    @property
    def questions(self) -> list[Question]:
        """The questions, in the order in which they are asked."""
        twice = "resume_twice" in self.names
        asked = (replace(question, twice=twice) for question in COMMAND_QUESTIONS if question.name in self.names)
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
        changes += [*self.further]
        whole = {change for change in changes if change in self.further or question.compared != "steps"}
        return {run_name(change): partial(self._carry_out, change, change in whole) for change in changes}

    def _compared_with(self, question: Question) -> Change:
        return FULLY_HASHED if question.hashes_all and self.command.every > 1 else question.base

    def _missing(self, question: Question) -> str | None:
        """The reason that a question is skipped here."""
        if question.needs and getattr(self.command, question.needs) is None:
            return NEEDS[question.needs]
        return question.obstacle()

    def _carry_out(self, change: Change, whole: bool) -> Trial:
        """A run. ReproError where the command fails, or nothing of it is seen, without any change."""
        early = self.divergence is None and self.repeat is not None and change != FULLY_HASHED and not whole
        against = self.baseline if early else self.further.get(change)
        baseline = against.record if against and self.may_end_early else None
        if change.course == "resumed":
            hashed = self.fully_hashed or self.baseline
            return self.trials.run(change, (), record_of(hashed) if hashed else None)
        if change.stops and self.baseline:
            trial = self.trials.resumed(change, self.stops_of(change), record_of(self.baseline))
        else:
            trial = self.trials.run(change, (), baseline)
        if change in (BASELINE, REPEAT):
            baselines.check_observed(trial, self.baseline)
        if change == FULLY_HASHED:
            self.fully_hashed = trial
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
        trial.leave_out_metrics(self.unsteady.names if self.unsteady else ())
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
        self.unsteady = scores.unsteady(record_of(baseline), record_of(repeat))
        for trial in (baseline, repeat):
            trial.leave_out_metrics(self.unsteady.names if self.unsteady else ())
        difference = first_difference(record_of(baseline), record_of(repeat), False)
        if difference is None or difference.channel == OUTPUTS:
            ignore_idle_generators(record_of(baseline), record_of(repeat))
        if self.unsteady and (difference is None or difference.channel == OUTPUTS):
            self.notes.append(self.unsteady.note)
        self.notes += files.compare(record_of(baseline), record_of(repeat)).notes
        rest = record_of(baseline).steps or record_of(baseline).metrics
        if difference is None or difference.channel != OUTPUTS or not rest:
            self.divergence = difference
            return
        self.volatile = difference
        self.names_vary = any((name in baseline.hashes) != (name in repeat.hashes) for name in difference.names)
        for trial in (baseline, repeat):
            trial.leave_out(difference.names)
        names = listed(difference.names)
        differ, them = ("differs", "it") if len(difference.names) == 1 else ("differ", "them")
        self.notes.append(
            f"{names} {differ} from run to run; all other answers do without {them}, and rest on {'steps' if record_of(baseline).steps else 'metrics'}"
        )
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
        alone = (self.unsteady.score if self.unsteady else None) or self.volatile
        if question.repeats and alone:
            answer.answer, answer.says = DIFFERS, str(reasons.reason(alone))
            answer.runs = [run_name(BASELINE), run_name(REPEAT)]
            answer.comparison = known(record_of(baseline), record_of(repeat), alone)
            return answer
        compared = run(run_name(self._compared_with(question)))
        judgment = JUDGMENTS[question.compared](question, compared, repeat, self.shared)
        return Decision(self, run).judged(answer, judgment)

    def _divergent(
        self, question: Question, divergence: Difference, baseline: Trial, repeat: Trial, run: RunNamed
    ) -> Answer:
        """Two baseline runs differ: the question that repeats is answered, all others are inconclusive."""
        if self.why is None:
            self.why = Decision(self, run).why(divergence, baseline, repeat)
        answer = self.skipped(question, self._missing(question) or "")
        if answer.reason:
            return answer
        if question.resumes and record_of(baseline).steps and not self.went_on:
            decided = self.cause is not None and self.cause.restorable
            own = OwnSteps(question, baseline, repeat, self.shared, divergence=divergence, decided=decided)
            return Decision(self, run).judged(answer, own)
        if question.repeats:
            answer.answer, answer.says, answer.reason = DIFFERS, self.why, None
            answer.comparison = known(record_of(baseline), record_of(repeat), divergence)
            answer.runs = [run_name(BASELINE), run_name(REPEAT)]
        else:
            repeated = any(question.repeats for question in self.questions)
            answer.answer = CANNOT_TELL
            answer.reason = TWO_DIFFER + ("" if repeated else f": {self.why}")
        return answer

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


def without_local_folders(results: Results) -> Results:
    """Results in which the folder that the command was started in is a dot, and the home ~."""
    moved: Results = without_folders(results, {Path.cwd(): ".", Path.home(): "~"})
    return moved
