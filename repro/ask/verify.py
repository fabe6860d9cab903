"""Asks the questions on this machine and answers with evidence: runs, fingerprints, and where two runs part."""

import logging
import platform
import re
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.progress import Progress

from repro.ask import compare, results
from repro.ask.questions import DIFFERS, QUESTIONS, SAME, Plan, Question
from repro.ask.runs import DONE, FAILED, Outcome, Runner
from repro.console import progress
from repro.run import experiment
from repro.run.config import Config

log = logging.getLogger(__name__)

BROKEN, FAILURE = 3, 1  # exit codes
SECONDS_A_RUN = 7.0  # on 2 cores, most of them for imports; corrected by what the runs really take
ALL = "all"  # the framework of a question that is asked of all together


@dataclass
class Asked:
    """A question put to one framework, or to all together, in one numerics."""

    question: Question
    framework: str
    numerics: str
    runs: dict[str, tuple[str, Plan]] = field(default_factory=dict)
    """By name of the run: the framework that runs it and the plan. Questions share runs by their names."""
    missing: list[str] = field(default_factory=list)
    """What this machine lacks, and so what is not asked."""


@dataclass
class Verification:
    """One call of `verify`: its questions, runs and answers."""

    config: Config
    workspace: Path
    overrides: list[str]
    folder: Path = field(init=False)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    interrupted: bool = False

    def __post_init__(self) -> None:
        started = datetime.now().strftime("%Y-%m-%d_%H-%M-%S-%f")
        self.folder = self.workspace / "verify" / started
        user = [item for item in self.overrides if not item.lstrip("+~").startswith("verify.")]
        self.runner = Runner(self.config, self.workspace, user, self.folder / "runs")
        self.asked = list(self._ask())

    def __call__(self) -> tuple[dict[str, Any], int]:
        """Carries out all runs, writes results.json, and returns its content and the exit code."""
        self.folder.mkdir(parents=True)
        started = time.perf_counter()
        try:
            with progress() as bar:
                self._run(bar)
        except KeyboardInterrupt:
            self.interrupted = True
            log.warning("interrupted; what was not run is not asked")
        content: dict[str, Any] = {
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": time.perf_counter() - started,
            "machine": experiment.machine() | {"platform": platform.platform(), "name": None},
            "settings": {
                "steps": self.config.verify.steps,
                "questions": [question.name for question in self._questions()],
                "frameworks": self.config.verify.frameworks,
                "numerics": self.config.verify.numerics,
                "overrides": self.overrides,
            },
            "runs": {name: _as_json(outcome) for name, outcome in self.outcomes.items()},
            "answers": [self._answer(asked) for asked in self.asked],
        }
        path = self.folder / "results.json"
        results.write(path, content)
        log.info("results in %s", path)
        return results.read(path), self._exit_code(content["answers"])

    def _questions(self) -> list[Question]:
        wanted = self.config.verify.questions
        if wanted == ["everything"]:
            return list(QUESTIONS)
        return [q for q in QUESTIONS if q.name in wanted or (wanted == ["all"] and not q.slow)]

    def _ask(self):
        """Each question for each framework and numerics, with its runs, or with what this machine lacks."""
        frameworks = self.config.verify.frameworks
        for numerics in self.config.verify.numerics:
            for question in self._questions():
                if question.together:
                    asked = Asked(question, ALL, numerics)
                    for plan in question.plans:
                        for framework in frameworks if plan.course != "relay" else [ALL]:
                            self._add(asked, framework, plan)
                    yield asked
                    continue
                for framework in frameworks:
                    asked = Asked(question, framework, numerics)
                    for plan in question.plans:
                        if plan.framework in (None, framework):
                            self._add(asked, framework, plan)
                    yield asked

    def _add(self, asked: Asked, framework: str, plan: Plan) -> None:
        missing = next(filter(None, (self.runner.missing(f, plan) for f in self._through(framework))), None)
        if missing is None:
            name = re.sub(r"[^a-z0-9]+", "-", plan.label.lower())
            asked.runs[f"{asked.numerics}/{framework}/{name}"] = (framework, plan)
        elif missing not in asked.missing:
            asked.missing.append(missing)

    def _through(self, framework: str) -> list[str]:
        return self.config.verify.frameworks if framework == ALL else [framework]

    def _run(self, bar: Progress) -> None:
        """Every run once, however many questions rest on it; a question that lacks a second run has none."""
        needed = {name: run for asked in self.asked if len(asked.runs) > 1 for name, run in asked.runs.items()}
        log.info("%d runs, about %.0f min", len(needed), len(needed) * SECONDS_A_RUN / 60)
        shown = bar.add_task("verify", total=len(needed))
        started = time.perf_counter()
        for number, (name, (framework, plan)) in enumerate(needed.items(), 1):
            numerics = name.split("/")[0]
            bar.update(shown, description=name)
            through = self._through(framework)
            outcome = self.runner.run(through[0], numerics, plan, name, through)
            self.outcomes[name] = outcome
            bar.update(shown, advance=1)
            left = (time.perf_counter() - started) / number * (len(needed) - number)
            said = outcome.fingerprint[:23] if outcome.fingerprint else outcome.error
            log.info("%d/%d  %s  %s  %.1f s; about %.0f s left", number, len(needed), name, said, outcome.seconds, left)

    def _answer(self, asked: Asked) -> dict[str, Any]:
        done = {name: self.outcomes[name] for name in asked.runs if name in self.outcomes}
        failed = {name: outcome for name, outcome in done.items() if outcome.status != DONE}
        done = {name: outcome for name, outcome in done.items() if outcome.status == DONE}
        missing = [*asked.missing, *(f"{outcome.label}: {outcome.error}" for outcome in failed.values())]
        if self.interrupted and len(done) < len(asked.runs):
            missing.append("interrupted")
        promise = asked.question.promised(asked.numerics)
        answer, difference = "not asked", None
        if len(done) > 1:
            evidence = [getattr(outcome, asked.question.evidence) for outcome in done.values()]
            answer = SAME if len(set(evidence)) == 1 else DIFFERS
            if answer == DIFFERS:
                difference = _difference(list(done.values()))
        return {
            "question": asked.question.name,
            "title": asked.question.title,
            "framework": asked.framework,
            "numerics": asked.numerics,
            "promise": promise,
            "answer": answer,
            "kept": None if promise is None or answer == "not asked" else answer == promise,
            "control": asked.question.control,
            "evidence": asked.question.evidence,
            "reason": "; ".join(missing) or (None if answer != "not asked" else "one run is not enough"),
            "runs": list(done) if answer != "not asked" else [],
            "difference": difference,
        }

    def _exit_code(self, answers: list[dict[str, Any]]) -> int:
        if any(answer["kept"] is False for answer in answers):
            return BROKEN
        failed = any(outcome.status == FAILED for outcome in self.outcomes.values())
        return FAILURE if failed or self.interrupted else 0


def _difference(done: list[Outcome]) -> dict[str, Any] | None:
    """Where the first run and the first that differs from it part; None where only the evaluations differ."""
    first = done[0]
    other = next((outcome for outcome in done if outcome.fingerprint != first.fingerprint), None)
    if other is None:
        return None
    assert first.folder and other.folder
    found = compare.first_difference(compare.read(first.folder), compare.read(other.folder))
    return found.as_json() if found else None


def _as_json(outcome: Outcome) -> dict[str, Any]:
    content = vars(outcome).copy()
    del content["folder"]
    return content
