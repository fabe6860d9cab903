"""One call of `verify`, from questions to results.

Each run that the questions need is made once; what is known is kept when the call is interrupted.
"""

import logging
import platform
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, Protocol, TypeVar

from rich.progress import Progress

from repro.console import progress
from repro.errors import INCONCLUSIVE, NOT_REPRODUCIBLE, ReproError
from repro.machine import facts
from repro.structs import converted
from repro.verify.answers import Answer
from repro.verify.questions import UNANSWERED, Question
from repro.verify.results import COMMAND, FAILED, KIND, Machine, Results, Run, Settings

log = logging.getLogger(__name__)


INTERRUPTED = "interrupted"
LIMITED = "--runs allows no more"


class NotMadeError(Exception):
    """A run that an answer needs was not made, as the call ended before it."""


Made = TypeVar("Made")


class Outcome(Protocol):
    """The result of one run, of any subject."""

    def as_run(self) -> Run:
        """The run as results.json has it."""
        ...


Needed = dict[str, Callable[[], Outcome]]
"""Runs by their names; questions share a run by its name."""


class Subject(Protocol):
    """A subject of questions: it knows which runs a question needs, and what they say."""

    def needed(self, question: Question) -> Needed:
        """The runs of a question, as far as this machine can make them; none where it is skipped."""
        ...

    def answer(self, question: Question, run: Callable[[str], Any]) -> Answer:
        """The answer; `run` returns the outcome of a run of needed(), by its name, and makes it first if need be.

        NotMadeError where `run` raises it, and the other runs show no difference.
        """
        ...

    def skipped(self, question: Question, reason: str) -> Answer:
        """The answer to a question that is not asked."""
        ...


def made(names: Iterable[str], run: Callable[[str], Made]) -> tuple[dict[str, Made], NotMadeError | None]:
    """The outcomes of runs by their names, and why another one was not made."""
    outcomes: dict[str, Made] = {}
    missing = None
    for name in names:
        try:
            outcomes[name] = run(name)
        except NotMadeError as reason:
            missing = reason
    return outcomes, missing


class Display:
    """The progress of runs in the terminal."""

    def __init__(self, bar: Progress, total: int, most: int | None) -> None:
        self.bar, self.task, self.started = bar, bar.add_task("verify", total=total), time.perf_counter()
        log.info("%d runs%s", total, f"; at most {most} if some differ" if most and most > total else "")

    def begin(self, name: str) -> None:
        """Names the run that begins."""
        self.bar.update(self.task, description=name)

    def end(self, name: str, run: Run, done: int, total: int) -> None:
        """Says how a run ended, and about how long the others take."""
        self.bar.update(self.task, completed=done, total=total)
        left = (time.perf_counter() - self.started) / done * max(total - done, 0)
        short = name.removeprefix(f"{COMMAND}/")
        end = run.error or (run.fingerprint or "done")[:23]
        log.info("%d/%d  %s  %s  %.1f s; about %.0f s left", done, total, short, end, run.seconds, left)


@dataclass
class Verification:
    """Questions, the runs and the answers."""

    agenda: Sequence[tuple[Subject, Question]]
    named: Collection[str] = ()
    """The questions that were asked by name, so that each needs an answer."""
    most: int | None = None
    """The number of runs at most; None: the runs of the questions, and some to test why others differ."""
    more: int = 0
    """The number of those, at most."""
    answers: list[Answer] = field(default_factory=list)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    interrupted: bool = False
    failure: Exception | None = None
    """The error that ended it, when something was known already."""
    seconds: float = 0.0

    def __call__(self) -> None:
        """Makes the runs, and answers. ReproError where there is nothing to compare with, OSError as from the disk."""
        started = time.perf_counter()
        try:
            with progress() as bar:
                total = self._total()
                self.most = total + self.more if self.most is None else self.most
                display = Display(bar, min(total, self.most), self.most)
                for subject, question in self.agenda:
                    try:
                        answer = subject.answer(question, partial(self._run, display, subject, question))
                    except NotMadeError:
                        answer = subject.skipped(question, LIMITED)
                    self.answers.append(answer)
        except KeyboardInterrupt:
            self.interrupted = True
            log.warning("interrupted; what was not run is skipped")
        except (OSError, ReproError) as error:
            self.failure = error
        for subject, question in self.agenda[len(self.answers) :]:
            self.answers.append(self._known(subject, question))
        if self.failure and all(answer.reason == INTERRUPTED for answer in self.answers):
            raise self.failure
        self.seconds = time.perf_counter() - started

    @property
    def exit_code(self) -> int:
        """3 where a promise was broken, 1 where a run failed, 4 where what was asked by name was not answered."""
        if any(answer.kept is False for answer in self.answers):
            return NOT_REPRODUCIBLE
        failed = any(outcome.as_run().status == FAILED for outcome in self.outcomes.values())
        if self.interrupted or failed:
            return 1
        unanswered = any(answer.answer in UNANSWERED for answer in self.answers if answer.question.name in self.named)
        return INCONCLUSIVE if unanswered else 0

    def results(self, settings: Settings) -> Results:
        """The content of results.json."""
        return Results(
            schema=KIND.schema,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            seconds=self.seconds,
            machine=converted(facts.hardware() | {"platform": platform.platform()}, Machine),
            settings=settings,
            runs={name: outcome.as_run() for name, outcome in self.outcomes.items()},
            answers=[answer.as_result() for answer in self.answers],
        )

    def _total(self) -> int:
        needed = {name for subject, question in self.agenda for name in subject.needed(question)}
        return len(needed | self.outcomes.keys())

    def _known(self, subject: Subject, question: Question) -> Answer:
        """The answer that the runs give which were made before the end."""
        try:
            return subject.answer(question, self._made)
        except (NotMadeError, OSError, ReproError):
            return subject.skipped(question, INTERRUPTED)

    def _made(self, name: str) -> Outcome:
        if name not in self.outcomes:
            raise NotMadeError(name)
        return self.outcomes[name]

    def _run(self, display: Display, subject: Subject, question: Question, name: str) -> Outcome:
        """The outcome of a run of a question, made once."""
        if name not in self.outcomes:
            if self.most is not None and len(self.outcomes) >= self.most:
                raise NotMadeError(name)
            display.begin(name)
            self.outcomes[name] = subject.needed(question)[name]()
            display.end(name, self.outcomes[name].as_run(), len(self.outcomes), self._total())
        return self.outcomes[name]
