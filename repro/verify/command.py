"""A command of one's own as the subject of questions. Where two plain runs differ, nothing else can be told."""

import json
import os
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from repro.compare import reasons
from repro.compare.comparison import known
from repro.compare.difference import Difference, first_difference
from repro.errors import ReproError, UsageError
from repro.record.record import OUTPUTS
from repro.text import MOST_NAMES, RUN, listed, slug
from repro.verify.answers import Answer, Json
from repro.verify.command_runs import Command, Trial, Trials
from repro.verify.judgment import COURSES, Grounds, record_of
from repro.verify.questions import AGAIN, CANNOT_TELL, DIFFERS, PLAIN, SAME, WHOLE, Change, Question, of_a_command
from repro.verify.results import COMMAND
from repro.verify.verification import Needed

FIXED = Change("PYTHONHASHSEED=0", (("PYTHONHASHSEED", "0"),))
FIXED_AGAIN = Change("PYTHONHASHSEED=0 again", FIXED.environment)

Run = Callable[[str], Trial]


@dataclass
class OwnCommand:
    """A command, and what is known of it so far."""

    command: Command
    names: Sequence[str]
    """Of the questions."""
    folder: Path
    """For its runs."""
    places: list[str] = field(default_factory=list)
    """What is to be said about runs that wrote to one place."""
    notes: list[str] = field(default_factory=list)
    """What people should know beside the answers."""
    plain: Trial | None = None
    again: Trial | None = None
    parted: Difference | None = None
    """Where two plain runs differ."""
    volatile: Difference | None = None
    """Files that differ from run to run though all steps are the same: all other answers do without them."""
    why: str | None = None
    """Why they do."""

    def __post_init__(self) -> None:
        self.trials = Trials(self.command, self.folder)

    @property
    def questions(self) -> list[Question]:
        """In the order in which they are asked."""
        return [question for question in of_a_command() if question.name in self.names]

    # --- runs -------------------------------------------------------------------------------------------------------

    def needed(self, question: Question) -> Needed:
        """The two plain runs, and, where they are the same, those of the question."""
        changes = [PLAIN, AGAIN]
        if self.parted is None and not self._missing(question):
            changes += [WHOLE] if question.name in COURSES and self.command.every > 1 else []
            changes += question.changes
        elif self._may_be_a_set:
            changes += [FIXED, FIXED_AGAIN]
        return {name(change): lambda change=change: self._carry_out(change) for change in changes}  # type: ignore[misc]

    def _missing(self, question: Question) -> str | None:
        """Why a question cannot be asked here."""
        if question.name in COURSES and self.command.resume is None:
            return "--resume names no command that goes on from a checkpoint"
        if question.name == "container" and self.command.image is None:
            return "--image names no image"
        if question.name == "seed" and self.command.seed_option is None:
            return "--seed-option names no option for the seed, as in --seed-option '--seed={}'"
        return question.missing()

    def _carry_out(self, change: Change) -> Trial:
        """A run. ReproError where the command fails, or nothing of it is seen, without any change."""
        steps = record_of(self.plain).steps if self.plain else 0
        trial = self.trials.run(change, steps)
        if change in (PLAIN, AGAIN):
            self._check_plain(trial)
        if change == PLAIN:
            self.plain = trial
        elif change == AGAIN and self.plain:
            self.again = trial
            self._check_places(self.plain, trial)
            self.notes += [*self.places, *record_of(self.plain).content.notes]
            self._compare_plain(first_difference(record_of(self.plain), record_of(trial), False))
        elif self.volatile:
            trial.leave_out(self.volatile.names)
        return trial

    def _compare_plain(self, found: Difference | None) -> None:
        assert self.plain and self.again
        if found is None or found.channel != OUTPUTS or not record_of(self.plain).steps:
            self.parted = found
            return
        self.volatile = found
        for trial in (self.plain, self.again):
            trial.leave_out(found.names)
        self.notes.append(
            f"{listed(found.names)} differs from run to run; all other answers do without it, and rest on steps"
        )

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
                f"{''.join('; ' + note for note in record.content.notes[:2])}"
            )

    def _check_places(self, plain: Trial, again: Trial) -> None:
        """Notes where two runs wrote to one place: the second may have read what the first had left."""
        shared = sorted(plain.wrote & again.wrote)
        if shared:
            names = [os.path.relpath(name) for name in shared[:MOST_NAMES]]
            more = f" and {len(shared) - len(names)} more" if len(shared) > len(names) else ""
            self.places.append(
                f"both runs wrote to one place: {', '.join(names)}{more}; the second may have read what the first "
                f"left. Put {RUN} into the command, which stands for a folder of each run's own, as in --out={RUN}"
            )

    # --- answers ----------------------------------------------------------------------------------------------------

    def answer(self, question: Question, run: Run) -> Answer:
        """What the runs of a question say."""
        plain, again = run(name(PLAIN)), run(name(AGAIN))
        if self.parted:
            return self._parted(question, self.parted, plain, again, run)
        grounds = Grounds(plain, again, plain, self.places)
        answer = self.unasked(question, self._missing(question) or "")
        if answer.reason:
            return answer
        if question.name in COURSES and not record_of(plain).steps:
            answer.answer, answer.reason = CANNOT_TELL, "no step was seen, so the command cannot be stopped at one"
            return answer
        if question.name == "restart":
            answer.answer, answer.says, answer.runs = SAME, grounds.evidence(plain), [name(PLAIN), name(AGAIN)]
            if self.volatile:
                answer.answer, answer.says = DIFFERS, str(reasons.reason(self.volatile))
                answer.comparison = known(record_of(plain), record_of(again), self.volatile)
            return answer
        if question.name in COURSES and self.command.every > 1:
            grounds.whole = run(name(WHOLE))
        return self._judged(answer, grounds, [run(name(change)) for change in question.changes])

    def _judged(self, answer: Answer, grounds: Grounds, trials: list[Trial]) -> Answer:
        """The first run that differs decides; a failed one leaves the question open."""
        question = answer.question
        against = grounds.whole if question.name in COURSES else grounds.plain
        failed = [f"{trial.change.label}: {trial.error}" for trial in trials if trial.error]
        answer.runs = [name(trial.change) for trial in (against, *trials) if not trial.error]
        for trial in trials:
            if trial.error:
                continue
            try:
                obstacle, found = grounds.compared(question, trial)
            except UsageError as error:
                obstacle, found = str(error).removeprefix("compare: "), None
            if obstacle:
                answer.answer, answer.reason, answer.runs = CANNOT_TELL, obstacle, []
                return answer
            if found:
                base = record_of(against)
                answer.answer, answer.says = DIFFERS, grounds.why(question, trial, found)
                answer.comparison = known(base, trial.record or base, found)
                return answer
        if failed:
            answer.answer, answer.reason = CANNOT_TELL, "; ".join(failed)
        else:
            answer.answer, answer.says = SAME, grounds.same(question, trials)
        return answer

    def _parted(self, question: Question, found: Difference, plain: Trial, again: Trial, run: Run) -> Answer:
        """Two plain runs differ: that is the answer to `restart`, and all else cannot be told."""
        if self.why is None:
            self.why = self._why(found, run)
        answer = self.unasked(question, "")
        if question.name == "restart":
            answer.answer, answer.says, answer.reason = DIFFERS, self.why, None
            answer.comparison = known(record_of(plain), record_of(again), found)
            answer.runs = [name(PLAIN), name(AGAIN)]
        else:
            answer.answer, answer.reason = CANNOT_TELL, "two plain runs differ"
            answer.reason += "" if "restart" in self.names else f": {self.why}"
        return answer

    @property
    def _may_be_a_set(self) -> bool:
        return self.parted is not None and "PYTHONHASHSEED" not in os.environ and self.parted.channel != "generator"

    def _why(self, found: Difference, run: Run) -> str:
        why = str(reasons.reason(found))
        if self._may_be_a_set:
            fixed = [run(name(change)) for change in (FIXED, FIXED_AGAIN)]
            if all(one.record for one in fixed) and not first_difference(
                record_of(fixed[0]), record_of(fixed[1]), False
            ):
                why = (
                    "with PYTHONHASHSEED=0 two runs are the same, so the order of a set, or hash(), decides; sort the "
                    "set, or set PYTHONHASHSEED"
                )
        return "; ".join([why, *self.places])

    def unasked(self, question: Question, reason: str) -> Answer:
        return Answer(question, COMMAND, shlex.join(self.command.words), reason=reason, evidence="record")

    # --- results ----------------------------------------------------------------------------------------------------

    def settings(self) -> Json:
        """As results.json has them."""
        return {
            "steps": record_of(self.plain).steps if self.plain else 0, "frameworks": [COMMAND],
            "questions": [question.name for question in self.questions], "numerics": [shlex.join(self.command.words)],
            "overrides": [],
        }  # fmt: skip


def name(change: Change) -> str:
    """Of a run, in results.json."""
    return f"{COMMAND}/{slug(change.label)}"


def anywhere(content: Json) -> Json:
    """The same without this machine's folders: the one that the command was started in is a dot, the home ~."""
    text = json.dumps(content)
    for folder, short in ((Path.cwd(), "."), (Path.home(), "~")):
        if folder != Path(os.sep):
            text = re.sub(rf"{re.escape(json.dumps(str(folder))[1:-1])}(?![\w.-])", short, text)
    found: Json = json.loads(text)
    return found
