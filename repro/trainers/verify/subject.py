"""The reference trainers as subjects of questions.

A subject is a framework in one arithmetic, or all frameworks together.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from repro.compare.comparison import Comparison
from repro.text import slug
from repro.trainers.loop.config import Verify
from repro.trainers.verify import recorded
from repro.trainers.verify.questions import BASELINE, TRAINER_QUESTIONS, TrainerChange, TrainerQuestion
from repro.trainers.verify.runs import Runner, TrainerTrial
from repro.verify.answers import Answer
from repro.verify.questions import CANNOT_TELL, DIFFERS, SAME
from repro.verify.results import DONE
from repro.verify.verification import Needed, NotMadeError, Subject

ALL = "all"  # the framework of a question that is asked of all together


@dataclass
class Column:
    """A framework, or all of them, in one arithmetic."""

    runner: Runner
    framework: str
    numerics: str
    frameworks: Sequence[str]
    """The frameworks that ALL stands for."""
    diverges: bool = False
    """Whether two runs as configured differ."""

    def needed(self, question: TrainerQuestion) -> Needed:
        """All runs of a question that this machine can make; one alone says nothing."""
        needed: Needed = {name: start for name, start, missing in self._planned(question) if missing is None}
        return needed if len(needed) > 1 else {}

    def _planned(self, question: TrainerQuestion) -> Iterator[tuple[str, Callable[[], TrainerTrial], str | None]]:
        """Each run of a question: its name, what makes it, and what this machine lacks for it."""
        for change in (question.base, *question.changes):
            each = self.framework == ALL and change.course != "relay"
            for framework in self.frameworks if each else [self.framework]:
                if change.framework in (None, framework):
                    yield self._plan(framework, change)

    def _plan(self, framework: str, change: TrainerChange) -> tuple[str, Callable[[], TrainerTrial], str | None]:
        through = list(self.frameworks) if framework == ALL else [framework]
        name = f"{self.numerics}/{framework}/{slug(change.label)}"

        def start() -> TrainerTrial:
            return self.runner.run(through[0], self.numerics, change, name, through)

        return name, start, next(filter(None, (self.runner.missing(one, change) for one in through)), None)

    def answer(self, question: TrainerQuestion, run: Callable[[str], TrainerTrial]) -> Answer:
        """Whether the runs of a question end alike."""
        outcomes: dict[str, TrainerTrial] = {}
        not_made: NotMadeError | None = None
        for name in self.needed(question):
            try:
                outcomes[name] = run(name)
            except NotMadeError as reason:
                not_made = reason
        done = {name: outcome for name, outcome in outcomes.items() if outcome.run.status == DONE}
        missing = list(dict.fromkeys(lack for _, _, lack in self._planned(question) if lack))
        missing += [f"{one.run.label}: {one.run.error}" for name, one in outcomes.items() if name not in done]
        answer = self.skipped(question, "; ".join(missing))
        if len(done) < 2 and not_made:
            raise not_made
        if len(done) < 2:
            answer.reason = answer.reason or "one run is not enough"
            return answer
        if self.diverges and question.base == BASELINE and not question.control:
            answer.answer, answer.reason = CANNOT_TELL, "two runs as configured differ"
            return answer
        answer.runs, answer.reason = list(done), answer.reason or None
        alike = len({outcome.run.evidence(question.evidence) for outcome in done.values()}) == 1
        if alike and not_made:
            raise not_made
        answer.answer = SAME if alike else DIFFERS
        answer.comparison = None if alike else _comparison(list(done.values()))
        self.diverges |= question.repeats and not alike
        return answer

    def skipped(self, question: TrainerQuestion, reason: str) -> Answer:
        """The answer to a question that is not asked."""
        return Answer(question, self.framework, self.numerics, question.evidence, reason=reason)


def agenda(runner: Runner, settings: Verify) -> list[tuple[Subject[TrainerQuestion], TrainerQuestion]]:
    """All that `verify` asks, by the configuration: each question of each framework in each arithmetic, or of all."""
    pairs: list[tuple[Subject[TrainerQuestion], TrainerQuestion]] = []
    for numerics in settings.numerics:
        columns = {name: Column(runner, name, numerics, settings.frameworks) for name in (*settings.frameworks, ALL)}
        for question in questions(settings.questions):
            names = [ALL] if question.together else settings.frameworks
            if question.numerics in (None, numerics):
                pairs += [(columns[name], question) for name in names]
    return pairs


def questions(names: Sequence[str]) -> list[TrainerQuestion]:
    """Those of these names; `all` are those that take no minutes, `everything` all of them."""
    if list(names) == ["everything"]:
        return list(TRAINER_QUESTIONS)
    return [q for q in TRAINER_QUESTIONS if q.name in names or (list(names) == ["all"] and not q.slow)]


def _comparison(done: list[TrainerTrial]) -> Comparison | None:
    """Where the first run and the first that differs from it diverge; None where only the evaluations differ."""
    first = done[0]
    other = next((outcome for outcome in done if outcome.run.fingerprint != first.run.fingerprint), None)
    if other is None:
        return None
    assert first.folder and other.folder
    return recorded.compared(recorded.read(first.folder), recorded.read(other.folder))
