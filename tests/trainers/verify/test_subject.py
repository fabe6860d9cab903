"""The answers about the reference trainers.

The runs are made up: an answer follows from their fingerprints.
"""

from pathlib import Path
from typing import Any

import pytest

from repro.trainers.loop.config import Verify
from repro.trainers.verify import subject
from repro.verify.questions import Change
from repro.verify.results import DONE, FAILED, REFUSED, Run
from repro.verify.verification import Verification


class MadeUp:
    """Runs whose fingerprints are given by label; a text that begins with `!` is an error."""

    def __init__(self, **fingerprints: str) -> None:
        self.fingerprints, self.made, self.folder = fingerprints, list[str](), Path()

    def missing(self, framework: str, change: Change) -> str | None:
        return "no GPU" if "params.device=gpu" in change.overrides else None

    def run(self, tasks: list[str], numerics: str, change: Change, name: str) -> Run:
        self.made.append(name)
        said = self.fingerprints.get(change.label.replace(" ", "_"), "0")
        if said == "^C":
            raise KeyboardInterrupt
        run = Run(tasks[0], numerics, change.label, "./run.sh", DONE, 10, 1.0)
        if said.startswith("!"):
            run.status, run.error = (REFUSED if "needs" in said else FAILED), said[1:]
        else:
            run.fingerprint = run.evaluation = said
        return run


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch):
    """What is answered, by framework and question, where runs have these fingerprints; and the exit code."""
    monkeypatch.setattr(subject, "_comparison", lambda _: None)

    def ask(*questions: str, frameworks: tuple[str, ...] = ("jax",), **fingerprints: str):
        settings = Verify(questions=list(questions), frameworks=list(frameworks), numerics=["deterministic"])
        made_up: Any = MadeUp(**fingerprints)
        verification = Verification(subject.agenda(made_up, settings))
        verification()
        found = {(one.framework, one.question.name): one for one in verification.answers}
        return found, verification.exit_code, made_up.made

    return ask


def test_the_same(ask) -> None:
    found, code, made = ask("restart_cpu", "workers", "seed", another_seed="1")
    assert [answer.answer for answer in found.values()] == ["same", "same", "differs"] and code == 0
    assert made == [
        f"deterministic/jax/{name}" for name in ("as-configured", "again", "1-worker", "3-workers", "another-seed")
    ]
    assert len(found["jax", "workers"].runs) == 3


def test_where_two_runs_as_configured_differ_all_else_is_inconclusive(ask) -> None:
    found, code, _ = ask("restart_cpu", "workers", "seed", "unseeded", again="1", no_seed_again="1", another_seed="2")
    assert code == 3 and found["jax", "restart_cpu"].answer == "differs"
    workers = found["jax", "workers"]
    assert (workers.answer, workers.reason, workers.kept) == ("cannot tell", "two runs as configured differ", None)
    assert found["jax", "seed"].answer == found["jax", "unseeded"].answer == "differs"


def test_a_run_that_fails_is_not_among_those_compared(ask) -> None:
    found, code, _ = ask("workers", **{"1_worker": "!out of memory"})
    answer = found["jax", "workers"]
    assert (answer.answer, answer.reason, code) == ("same", "1 worker: out of memory", 1)
    assert answer.runs == ["deterministic/jax/as-configured", "deterministic/jax/3-workers"]
    found, code, _ = ask("restart_cpu", again="!it needs AVX")
    assert (found["jax", "restart_cpu"].answer, code) == ("not asked", 0)


def test_what_runs_have_shown_outlives_an_interrupt(ask) -> None:
    """Two of three runs differ; of two others, one was made."""
    found, code, _ = ask("workers", "seed", **{"1_worker": "1", "3_workers": "^C"})
    assert (found["jax", "workers"].answer, code) == ("differs", 3)
    assert (found["jax", "seed"].answer, found["jax", "seed"].reason) == ("not asked", "interrupted")
    found, code, _ = ask("workers", **{"3_workers": "^C"})
    assert (found["jax", "workers"].answer, code) == ("not asked", 1)


def test_what_this_machine_lacks_is_not_run(ask) -> None:
    found, code, made = ask("restart_gpu", "cpu_gpu")
    assert {answer.reason for answer in found.values()} == {"no GPU"}
    assert (made, code) == ([], 0)


def test_all_frameworks_together_share_the_run_as_configured(ask) -> None:
    found, code, made = ask("restart_cpu", "frameworks", frameworks=("jax", "pytorch"))
    assert found["all", "frameworks"].answer == "same" and found["all", "frameworks"].promised is None
    assert len(made) == 4 and code == 0
