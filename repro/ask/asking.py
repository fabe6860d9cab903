"""Asks questions of a command, and answers with evidence.

Two plain runs come first; where they differ, nothing else can be told.
"""

import logging
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.progress import Progress

from repro.ask import passport, reasons
from repro.ask.changes import AGAIN, PLAIN, WHOLE, Change, Question, questions
from repro.ask.channels import Difference, first_difference
from repro.ask.judgment import CANNOT_TELL, COURSES, NOT_ASKED, Answer, Grounds, record_of
from repro.ask.outputs import RUN
from repro.ask.questions import DIFFERS, SAME
from repro.ask.trials import Command, Trial, Trials
from repro.console import progress
from repro.errors import NOT_REPRODUCIBLE, ReproError, UsageError

log = logging.getLogger(__name__)

FIXED = Change("PYTHONHASHSEED=0", (("PYTHONHASHSEED", "0"),))
FIXED_AGAIN = Change("PYTHONHASHSEED=0 again", FIXED.environment)


@dataclass
class Asking:
    """One call of `verify`: a command, the questions, the runs and the answers."""

    command: Command
    names: Sequence[str]
    folder: Path
    answers: list[Answer] = field(default_factory=list)
    trials: dict[str, Trial] = field(default_factory=dict)
    """By the label of the change."""
    notes: list[str] = field(default_factory=list)
    """What people should know beside the answers."""
    places: list[str] = field(default_factory=list)
    """Those of them that say that runs wrote to one place."""
    interrupted: bool = False

    def __post_init__(self) -> None:
        self.runner = Trials(self.command, self.folder)
        self.questions = [question for question in questions() if question.name in self.names]
        self.clock = time.perf_counter()

    def __call__(self) -> None:
        """Makes the runs, and answers. ReproError where the command fails as it stands, or nothing of it is seen."""
        try:
            with progress() as bar:
                self._ask(bar)
        except KeyboardInterrupt:
            self.interrupted = True
            log.warning("interrupted; what was not run is not asked")
        answered = {answer.question for answer in self.answers}
        for question in self.questions:
            if question.name not in answered:
                self.answers.append(Answer(question.name, NOT_ASKED, question.promised, why="interrupted"))

    @property
    def exit_code(self) -> int:
        if any(answer.kept is False for answer in self.answers):
            return NOT_REPRODUCIBLE
        failed = any(trial.error for trial in self.trials.values())
        return 1 if failed or self.interrupted else 0

    def as_json(self) -> dict[str, Any]:
        """Steps and fingerprint are of the first plain run."""
        record = self.trials[PLAIN.label].record if PLAIN.label in self.trials else None
        return {
            "steps": record.steps if record else 0,
            "fingerprint": record.content["fingerprint"] if record else None,
            "answers": [answer.as_json() for answer in self.answers],
        }

    def passport(self) -> dict[str, Any]:
        """What results.json holds."""
        spent = time.perf_counter() - self.clock
        return passport.content(self.command, spent, self.questions, self.answers, self.trials)

    # --- runs -------------------------------------------------------------------------------------------------------

    def _ask(self, bar: Progress) -> None:
        needed = self._needed()
        log.info("%d runs of: %s", len(needed) + 2, " ".join(self.command.words))
        self.shown = bar.add_task("verify", total=len(needed) + 2)
        self.bar, self.total = bar, len(needed) + 2
        plain, again = self._run(PLAIN), self._run(AGAIN)
        self._check_places(plain, again)
        self.notes += [*self.places, *record_of(plain).content["notes"]]
        found = first_difference(record_of(plain), record_of(again), False)
        if found:
            self._restart_differs(found)
            return
        if "restart" in self.names:
            why = self._grounds(self.questions[0]).evidence(plain)
            self.answers.append(Answer("restart", SAME, SAME, why=why, runs=[PLAIN.label, AGAIN.label]))
        for question in self.questions:
            if question.name != "restart":
                self.answers.append(self._answer(question))

    def _needed(self) -> list[Change]:
        """The changes to run, but for the two plain ones."""
        asked = [question for question in self.questions if question.name != "restart" and not self._missing(question)]
        changes = [change for question in asked for change in question.changes]
        whole = [WHOLE] if self.command.every > 1 and any(question.name in COURSES for question in asked) else []
        return whole + changes

    def _missing(self, question: Question) -> str | None:
        """Why a question cannot be asked here."""
        if question.name in COURSES and self.command.resume is None:
            return "--resume names no command that goes on from a checkpoint"
        if question.name == "container" and self.command.image is None:
            return "--image names no image"
        if question.name == "seed" and self.command.seed_option is None:
            return "--seed-option names no option for the seed, as in --seed-option '--seed={}'"
        return question.missing()

    def _run(self, change: Change) -> Trial:
        """A change's run, made once. ReproError where the command fails, or nothing is seen, without any change."""
        if change.label in self.trials:
            return self.trials[change.label]
        self.bar.update(self.shown, description=change.label)
        steps = self.trials[PLAIN.label].record.steps if PLAIN.label in self.trials else 0  # type: ignore[union-attr]
        trial = self.runner.run(change, steps)
        if change in (PLAIN, AGAIN):
            self._check_plain(trial)
        self.trials[change.label] = trial
        self.bar.update(self.shown, advance=1)
        done, spent = len(self.trials), time.perf_counter() - self.clock
        left = max(self.total - done, 0)
        log.info(
            "%d/%d  %s  %s  %.1f s; about %.0f s left", done, self.total, change.label, _short(trial), trial.seconds,
            spent / done * left,
        )  # fmt: skip
        return trial

    def _check_plain(self, trial: Trial) -> None:
        if trial.error:
            raise ReproError(f"verify: the command fails as it stands: {trial.error}; see {trial.folder}")
        record = record_of(trial)
        absent = f"; --output {' '.join(self.command.patterns)} names no file that it wrote" * bool(
            self.command.patterns
        )
        if not record.steps and not record.outputs:
            raise ReproError(
                "verify: nothing of the command was observed: no step of an optimizer, and no output"
                f"{absent}; name what it writes with --output GLOB, or call repro.watch in a loop of its own"
                f"{''.join('; ' + note for note in record.content['notes'][:2])}"
            )

    def _check_places(self, plain: Trial, again: Trial) -> None:
        """Notes where two runs wrote to one place: the second may have read what the first had left."""
        shared = sorted(plain.wrote & again.wrote)
        if shared:
            names = [os.path.relpath(name) for name in shared[: reasons.SHOWN]]
            more = f" and {len(shared) - len(names)} more" if len(shared) > len(names) else ""
            self.places.append(
                f"both runs wrote to one place: {', '.join(names)}{more}; the second may have read what the first "
                f"left. Put {RUN} into the command, which stands for a folder of each run's own, as in --out={RUN}"
            )

    # --- answers ----------------------------------------------------------------------------------------------------

    def _restart_differs(self, found: Difference) -> None:
        why = str(reasons.reason(found))
        if "PYTHONHASHSEED" not in os.environ and found.channel != "generator":
            fixed = [self._run(change) for change in (FIXED, FIXED_AGAIN)]
            if all(run.record for run in fixed) and not first_difference(
                record_of(fixed[0]), record_of(fixed[1]), False
            ):
                why = (
                    "with PYTHONHASHSEED=0 two runs are the same, so the order of a set, or hash(), decides; sort the "
                    "set, or set PYTHONHASHSEED"
                )
        why = "; ".join([why, *self.places])
        for question in self.questions:
            if question.name == "restart":
                runs = [PLAIN.label, AGAIN.label]
                self.answers.append(Answer("restart", DIFFERS, SAME, found.as_json(), why, found, runs))
            else:
                two = f"two plain runs differ: {why}" if "restart" not in self.names else "two plain runs differ"
                self.answers.append(Answer(question.name, CANNOT_TELL, question.promised, why=two))

    def _grounds(self, question: Question) -> Grounds:
        whole = self._run(WHOLE) if question.name in COURSES and self.command.every > 1 else self.trials[PLAIN.label]
        return Grounds(self.trials[PLAIN.label], self.trials[AGAIN.label], whole, self.places)

    def _answer(self, question: Question) -> Answer:
        answer = Answer(question.name, NOT_ASKED, question.promised, why=self._missing(question))
        if answer.why:
            return answer
        found: Difference | None = None
        if question.name in COURSES and not record_of(self.trials[PLAIN.label]).steps:
            answer.answer, answer.why = CANNOT_TELL, "no step was seen, so the command cannot be stopped at one"
            return answer
        trials = [self._run(change) for change in question.changes]
        failed = [f"{trial.change.label}: {trial.error}" for trial in trials if trial.error]
        grounds = self._grounds(question)
        for trial in trials:
            if trial.error or found:
                continue
            try:
                obstacle, found = grounds.compared(question, trial)
            except UsageError as error:
                obstacle = str(error).removeprefix("compare: ")
            if obstacle:
                answer.answer, answer.why = CANNOT_TELL, obstacle
                return answer
            if found:
                answer.answer, answer.first, answer.found = DIFFERS, found.as_json(), found
                answer.why = grounds.why(question, trial, found)
        if not found and failed:
            answer.answer, answer.why = CANNOT_TELL, "; ".join(failed)
        elif not found:
            answer.answer, answer.why = SAME, grounds.same(question, trials)
        against = grounds.whole if question.name in COURSES else grounds.plain
        answer.runs = [trial.change.label for trial in (against, *trials) if not trial.error]
        return answer


def _short(trial: Trial) -> str:
    if trial.error:
        return trial.error
    fingerprint = trial.record.content["fingerprint"] if trial.record else None
    return fingerprint[:23] if fingerprint else "done"
