"""repro.verify.trainers: what is said of runs of the suite, by their fingerprints. The runs are made up."""

from pathlib import Path
from typing import Any

import pytest

from repro.run.config import Verify
from repro.verify import trainers
from repro.verify.questions import Change
from repro.verify.trainer_runs import DONE, FAILED, REFUSED, Outcome
from repro.verify.verification import Asking


class MadeUp:
    """Runs whose fingerprints are given by label; a text that begins with `!` is an error."""

    def __init__(self, **fingerprints: str) -> None:
        self.fingerprints, self.made = fingerprints, list[str]()

    def missing(self, framework: str, change: Change) -> str | None:
        return "no GPU" if change.gpu else None

    def run(self, framework: str, numerics: str, change: Change, name: str, tasks: list[str]) -> Outcome:
        self.made.append(name)
        said = self.fingerprints.get(change.label.replace(" ", "_"), "0")
        outcome = Outcome(framework, numerics, change.label, "./run.sh", DONE, 10, 1.0, folder=Path(name))
        if said.startswith("!"):
            outcome.status, outcome.error = (REFUSED if "needs" in said else FAILED), said[1:]
        else:
            outcome.fingerprint = outcome.evaluation = said
        return outcome


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch):
    """What is answered, by framework and question, where runs have these fingerprints; and the exit code."""
    monkeypatch.setattr(trainers, "_comparison", lambda _: None)

    def ask(*questions: str, frameworks: tuple[str, ...] = ("jax",), **fingerprints: str):
        settings = Verify(questions=list(questions), frameworks=list(frameworks), numerics=["deterministic"])
        made_up: Any = MadeUp(**fingerprints)
        asking = Asking(trainers.asked(made_up, settings))
        asking()
        found = {(one.framework, one.question.name): one for one in asking.answers}
        return found, asking.exit_code, made_up.made

    return ask


def test_the_same(ask) -> None:
    found, code, made = ask("restart_cpu", "workers", "seed", another_seed="1")
    assert [answer.answer for answer in found.values()] == ["same", "same", "differs"] and code == 0
    assert made == [f"deterministic/jax/{name}" for name in
                    ("as-configured", "again", "1-worker", "3-workers", "another-seed")]  # fmt: skip
    assert len(found["jax", "workers"].runs) == 3


def test_where_two_runs_as_configured_differ_nothing_else_can_be_told(ask) -> None:
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


def test_what_this_machine_lacks_is_not_run(ask) -> None:
    found, code, made = ask("restart_gpu", "cpu_gpu")
    assert {answer.reason for answer in found.values()} == {"no GPU"}
    assert (made, code) == ([], 0)


def test_all_frameworks_together_share_the_run_as_configured(ask) -> None:
    found, code, made = ask("restart_cpu", "frameworks", frameworks=("jax", "pytorch"))
    assert found["all", "frameworks"].answer == "same" and found["all", "frameworks"].promised is None
    assert len(made) == 4 and code == 0
