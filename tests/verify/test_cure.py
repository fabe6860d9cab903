"""`verify --cure`: which set is called a cure, and which is not. Runs are made by hand."""

import io
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from rich.console import Console

from repro.record import record
from repro.report.cures import show
from repro.text import slug
from repro.verify.command import OwnCommand
from repro.verify.cure import Cure, cures
from repro.verify.questions import Change
from repro.verify.trial import Command, Trial
from repro.verify.verification import Verification
from support.commands import straight, write

Bits = Callable[[dict[str, str], Change], object]


@dataclass
class Runs:
    """Stands in for the runs of a command: `bits` says what comes out, given the variables; it raises an error of the run."""

    command: Command
    folder: Path
    bits: Bits
    channel: str
    seconds: dict[str, float]
    """By variable, how long a run with it takes."""

    def run(self, change: Change, steps: int = 0, baseline: object = None) -> Trial:
        variables = dict(change.environment)
        injected = [*variables.get("REPRO_REMEDIES", "").split(","), variables.get("REPRO_CHANGES", "")]
        variables |= {name: "1" for name in injected if name}
        slowest = max((self.seconds.get(name, 1.0) for name in variables), default=1.0)
        trial = Trial(change, self.command, self.folder / slug(change.label), seconds=slowest)
        try:
            value = self.bits(variables, change)
        except ValueError as error:
            trial.error = str(error)
            return trial
        other = {name: {1: value} for name in {self.channel, "gradients"}} if self.channel != "outputs" else {}
        outputs = {"model.pt": f"{value:0>64}"} if self.channel == "outputs" else {}
        trial.record = record.read(write(trial.folder, straight(2, **other), outputs=outputs))
        trial.hashes = trial.record.outputs
        return trial


@pytest.fixture(autouse=True)
def without_a_hash_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)


def cure(
    tmp_path: Path,
    bits: Bits,
    ask: str = "restart",
    channel: str = "batch",
    seconds: dict[str, float] | None = None,
) -> list[Cure]:
    command = Command(["python", "train.py"])
    own = OwnCommand(command, ask.split(","), tmp_path / "runs")
    own.trials = cast(Any, Runs(command, tmp_path / "runs", bits, channel, seconds or {}))
    verification = Verification([(own, question) for question in own.questions])
    verification()
    trials = {name: trial for name, trial in verification.outcomes.items() if isinstance(trial, Trial)}
    return cures(own, verification.answers, trials)


def names(results: Cure) -> list[str]:
    return [remedy.name for remedy in results.found.remedies] if results.found else []


def test_one_remedy(tmp_path: Path) -> None:
    numbers = itertools.count()
    bits: Bits = lambda variables, _: variables.get("PYTHONHASHSEED") or next(numbers)  # noqa: E731
    (result,) = cure(tmp_path, bits)
    assert names(result) == ["PYTHONHASHSEED"] and result.found and result.found.runs == 5
    console = Console(file=io.StringIO(), width=120)
    show([result], console)
    told = console.file.getvalue()  # type: ignore[attr-defined]
    assert (
        "The smallest set with the same bits: PYTHONHASHSEED. 5 of 5 runs with it are equal, 5 of 5 runs without"
        in told
    )
    assert (
        "It takes 1.00 times the time: 1.0 s a run, 1.0 s without." in told
        and "  shell: export PYTHONHASHSEED=0" in told
    )
    assert result.unequal == (5, 5) and result.as_json()["lines"] == ["shell: export PYTHONHASHSEED=0"]
    tried = {one["remedies"]: one["result"] for one in result.as_json()["tried"]}
    assert tried["seeds"] == "differs in run 2" and tried["PYTHONHASHSEED"] == "same in 5 runs"


def test_the_cheapest_of_two(tmp_path: Path) -> None:
    numbers = itertools.count()
    bits: Bits = lambda v, _: "deterministic" in v or "OMP_NUM_THREADS" in v or next(numbers)  # noqa: E731
    seconds = {"deterministic": 4.0, "OMP_NUM_THREADS": 2.0}
    (result,) = cure(tmp_path, bits, channel="gradients", seconds=seconds)
    assert names(result) == ["one thread"] and result.found and result.found.seconds == 2.0
    assert (
        result.attempts[0].name == "initialized memory"
    )  # what most likely has nothing to do with gradients comes later
    assert not any("PYTHONHASHSEED" in attempt.name for attempt in result.attempts)


def test_the_smallest_set_of_several(tmp_path: Path) -> None:
    numbers = itertools.count()
    wanted = {"PYTHONHASHSEED", "seed=0", "OMP_NUM_THREADS"}
    bits: Bits = lambda variables, _: "same" if wanted <= variables.keys() else next(numbers)  # noqa: E731
    (result,) = cure(tmp_path, bits)
    assert sorted(names(result)) == ["PYTHONHASHSEED", "one thread", "seeds"]
    assert len({attempt.name for attempt in result.attempts}) == len(result.attempts)


def test_no_set(tmp_path: Path) -> None:
    numbers = itertools.count()
    (result,) = cure(tmp_path, lambda v, _: next(numbers))
    assert result.found is None and result.attempts[-2].name.count(" + ") >= 4
    assert result.attempts[-1].name == "portable numerics"


def test_equal_by_chance_is_no_cure(tmp_path: Path) -> None:
    """One run in six differs: three equal runs with a remedy that does nothing prove nothing."""
    numbers = itertools.count()
    (result,) = cure(tmp_path, lambda v, _: "other" if next(numbers) % 6 == 1 else "usual")
    assert result.unequal == (1, 3) and result.found is None
    numbers = itertools.count()
    bits: Bits = lambda v, _: "fixed" if "PYTHONHASHSEED" in v else ("other" if next(numbers) % 6 == 1 else "usual")  # noqa: E731
    (result,) = cure(tmp_path / "b", bits)
    assert names(result) == ["PYTHONHASHSEED"] and result.found and result.found.runs == 9


def test_a_remedy_that_fails_is_none_of_the_set(tmp_path: Path) -> None:
    numbers = itertools.count()

    def bits(variables: dict[str, str], _: Change) -> object:
        if "deterministic" in variables:
            raise ValueError("no deterministic implementation")
        return "x" if {"OMP_NUM_THREADS", "seed=0"} <= variables.keys() else next(numbers)

    (result,) = cure(tmp_path, bits, channel="weights")
    assert sorted(names(result)) == ["one thread", "seeds"]
    (failed,) = [attempt for attempt in result.attempts if attempt.failed]
    assert failed.result == "fails: no deterministic implementation"


def test_a_question_that_differs(tmp_path: Path) -> None:
    bits: Bits = lambda variables, _: variables.get("OMP_NUM_THREADS", "2")  # noqa: E731
    result = cure(tmp_path, bits, ask="restart,hash_seed,threads", channel="gradients")
    assert [one.question for one in result] == ["threads"] and names(result[0]) == ["one thread"]
    assert result[0].unequal == (2, 2) and result[0].found and result[0].found.runs == 8
    assert [attempt.name for attempt in result[0].attempts] == [
        "one thread"
    ]  # portable numerics only where nothing else does


def test_a_question_that_differs_by_chance(tmp_path: Path) -> None:
    numbers = itertools.count()
    bits: Bits = lambda v, _: next(numbers) if v.get("OMP_NUM_THREADS") == "1" and next(numbers) < 1 else "usual"  # noqa: E731
    (result,) = cure(tmp_path, bits, ask="restart,threads", channel="gradients")
    assert result.found is None and not result.attempts
    assert (
        result.hindrance
        == "1 thread: run again, it does not differ, so it does by chance; a cure would be one by chance, too"
    )


def test_files_that_differ_though_all_steps_are_the_same(tmp_path: Path) -> None:
    numbers = itertools.count(1)
    bits: Bits = lambda variables, _: 0 if "PYTHONHASHSEED" in variables else next(numbers)  # noqa: E731
    (result,) = cure(tmp_path, bits, channel="outputs")
    assert names(result) == ["PYTHONHASHSEED"] and result.unequal == (5, 5)


def test_nothing_differs(tmp_path: Path) -> None:
    assert cure(tmp_path, lambda v, _: "same", ask="restart,hash_seed") == []


def test_a_remedy_that_the_shell_has_already_is_not_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    numbers = itertools.count()
    (result,) = cure(tmp_path, lambda v, _: next(numbers))
    assert result.attempts and not any("PYTHONHASHSEED" in attempt.name for attempt in result.attempts)
