"""One call of `verify`: asks questions, makes each run that they need once, keeps what is known when interrupted."""

import logging
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, Protocol

from rich.progress import Progress

from repro.console import progress
from repro.errors import NOT_REPRODUCIBLE
from repro.run import experiment
from repro.verify.answers import Answer, Json
from repro.verify.questions import Question
from repro.verify.results import COMMAND

log = logging.getLogger(__name__)


class Ran(Protocol):
    """What came of a run."""

    seconds: float
    error: str | None

    @property
    def failed(self) -> bool:
        """Whether it went wrong; a run that this machine cannot make did not."""

    @property
    def fingerprint(self) -> str | None: ...

    def as_run(self) -> Json:
        """As results.json has it."""


Needed = dict[str, Callable[[], Ran]]
"""Runs by their names; questions share a run by its name."""


class Subject(Protocol):
    """What is asked about: it knows which runs a question needs, and what they say."""

    def needed(self, question: Question) -> Needed:
        """The runs of a question, as far as this machine can make them; none where it cannot be asked."""

    def answer(self, question: Question, run: Callable[[str], Any]) -> Answer:
        """The answer; `run` gives what came of a run of needed(), by its name, and makes it first if need be."""

    def unasked(self, question: Question, reason: str) -> Answer: ...


@dataclass
class Asking:
    """Questions, the runs and the answers."""

    asked: Sequence[tuple[Subject, Question]]
    answers: list[Answer] = field(default_factory=list)
    ran: dict[str, Ran] = field(default_factory=dict)
    interrupted: bool = False

    def __call__(self) -> None:
        """Makes the runs, and answers. ReproError where there is nothing to compare with."""
        self.clock = time.perf_counter()
        try:
            with progress() as self.bar:
                self._ask(self.bar)
        except KeyboardInterrupt:
            self.interrupted = True
            log.warning("interrupted; what was not run is not asked")
        for subject, question in self.asked[len(self.answers) :]:
            self.answers.append(subject.unasked(question, "interrupted"))
        self.seconds = time.perf_counter() - self.clock

    @property
    def exit_code(self) -> int:
        """3 where a promise was broken, 1 where a run failed."""
        if any(answer.kept is False for answer in self.answers):
            return NOT_REPRODUCIBLE
        return 1 if self.interrupted or any(ran.failed for ran in self.ran.values()) else 0

    def results(self, settings: Json) -> Json:
        """What results.json holds."""
        return {
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": self.seconds,
            "machine": experiment.machine() | {"platform": platform.platform(), "name": None},
            "settings": settings,
            "runs": {name: ran.as_run() for name, ran in self.ran.items()},
            "answers": [answer.as_json() for answer in self.answers],
        }

    def _ask(self, bar: Progress) -> None:
        self.shown = bar.add_task("verify", total=self._total())
        log.info("%d runs", self._total())
        for subject, question in self.asked:
            self.answers.append(subject.answer(question, partial(self._run, subject, question)))

    def _total(self) -> int:
        return len({name for subject, question in self.asked for name in subject.needed(question)} | self.ran.keys())

    def _run(self, subject: Subject, question: Question, name: str) -> Ran:
        """A run of a question, made once."""
        if name in self.ran:
            return self.ran[name]
        self.bar.update(self.shown, description=name)
        ran = self.ran[name] = subject.needed(question)[name]()
        total, done, spent = self._total(), len(self.ran), time.perf_counter() - self.clock
        self.bar.update(self.shown, completed=done, total=total)
        said = ran.error or (ran.fingerprint or "done")[:23]
        left = spent / done * max(total - done, 0)
        short = name.removeprefix(f"{COMMAND}/")
        log.info("%d/%d  %s  %s  %.1f s; about %.0f s left", done, total, short, said, ran.seconds, left)
        return ran
