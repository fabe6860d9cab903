"""The reference trainers as subjects of questions.

A subject is a framework in one arithmetic, or all frameworks together. A trainer says itself what it trained, so its runs
are compared by that alone, and a run that fails leaves the others to be compared. A command (repro.verify.command) says
nothing: it runs twice first, is observed step by step, and is not answered for where a run fails.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from repro.compare.comparison import Comparison
from repro.text import slug
from repro.trainers.loop.config import Verify
from repro.trainers.verify import recorded
from repro.trainers.verify.questions import BASELINE, TRAINER_QUESTIONS, TrainerQuestion
from repro.trainers.verify.runs import Runner, left_by
from repro.verify.answers import Answer
from repro.verify.questions import CANNOT_TELL, DIFFERS, SAME, Change, Question
from repro.verify.results import DONE, Run
from repro.verify.verification import Needed, Subject, made

ALL = "all"  # the framework of a question that is asked of all together


@dataclass
class Column:
    """A framework, or all of them, in one arithmetic."""

    runner: Runner
    framework: str
    numerics: str
    frameworks: Sequence[str]
    """It alone, or those that ALL stands for."""
    diverges: bool = False
    """Whether two runs as configured differ."""

    def needed(self, question: Question) -> Needed:
        """All runs of a question that this machine can make; one alone says nothing."""
        needed: Needed = {
            name: partial(self.runner.run, tasks, self.numerics, change, name)
            for name, change, tasks in self._planned(question)
            if self._missing(change, tasks) is None
        }
        return needed if len(needed) > 1 else {}

    def _planned(self, question: Question) -> Iterator[tuple[str, Change, Sequence[str]]]:
        """Each run of a question: its name, its change, and the frameworks that it goes through."""
        for change in (question.base, *question.changes):
            each = [[one] for one in self.frameworks if change.framework in (None, one)]
            for tasks in [self.frameworks] if change.course == "relay" else each:
                framework = self.framework if change.course == "relay" else tasks[0]
                yield f"{self.numerics}/{framework}/{slug(change.label)}", change, tasks

    def _missing(self, change: Change, tasks: Sequence[str]) -> str | None:
        """Returns what this machine lacks for a run, or None."""
        return next(filter(None, (self.runner.missing(task, change) for task in tasks)), None)

    def answer(self, question: Question, run: Callable[[str], Run]) -> Answer:
        """Compares how the runs of a question end."""
        runs, not_made = made(self.needed(question), run)
        done = {name: one for name, one in runs.items() if one.status == DONE}
        lacks = dict.fromkeys(self._missing(change, tasks) for _, change, tasks in self._planned(question))
        missing = [*filter(None, lacks), *(f"{one.label}: {one.error}" for one in runs.values() if one.error)]
        answer = self.skipped(question, "; ".join(missing))
        by_chance = self.diverges and question.base == BASELINE and not question.control
        alike = len({one.evidence(question.evidence) for one in done.values()}) < 2
        if not_made and (len(done) < 2 or (alike and not by_chance)):
            raise not_made
        if len(done) < 2:
            answer.reason = answer.reason or "one run is not enough"
        elif by_chance:
            answer.answer, answer.reason = CANNOT_TELL, "two runs as configured differ"
        else:
            answer.answer, answer.reason, answer.runs = SAME if alike else DIFFERS, answer.reason or None, list(done)
            answer.comparison = _comparison({self.runner.folder / name: one for name, one in done.items()})
            self.diverges |= question.repeats and not alike
        return answer

    def skipped(self, question: Question, reason: str) -> Answer:
        """The answer to a question that is not asked."""
        return Answer(question, self.framework, self.numerics, reason=reason)


def agenda(runner: Runner, settings: Verify) -> list[tuple[Subject, Question]]:
    """All that `verify` asks, by the configuration: each question of each framework in each arithmetic, or of all."""
    pairs: list[tuple[Subject, Question]] = []
    for numerics in settings.numerics:
        each = [Column(runner, name, numerics, [name]) for name in settings.frameworks]
        together = [Column(runner, ALL, numerics, settings.frameworks)]
        for question in questions(settings.questions):
            if question.numerics in (None, numerics):
                pairs += [(column, question) for column in (together if question.together else each)]
    return pairs


def questions(names: Sequence[str]) -> list[TrainerQuestion]:
    """Those of these names; `all` are those that take no minutes, `everything` all of them."""
    if list(names) == ["everything"]:
        return list(TRAINER_QUESTIONS)
    return [q for q in TRAINER_QUESTIONS if q.name in names or (list(names) == ["all"] and not q.slow)]


def _comparison(done: Mapping[Path, Run]) -> Comparison | None:
    """Compares the first run, by its workspace, with the first that has other weights; None if all have the same."""
    first = next(iter(done.items()))
    other = next((item for item in done.items() if item[1].fingerprint != first[1].fingerprint), None)
    if other is None:
        return None
    a, b = (recorded.read(left_by(workspace, run.task)) for workspace, run in (first, other))
    return recorded.compared(a, b)
