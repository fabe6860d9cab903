"""`compare --narrow` of two trainer runs: what a stranger's experiment.json can have done."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from repro.errors import ReproError, UsageError
from repro.trainers.loop.config import Params
from repro.trainers.verify import narrow


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The words of what would be run, which fails."""
    calls: list[tuple[str, ...]] = []

    def run_sh(task: str, workspace: Path, *overrides: str) -> SimpleNamespace:
        calls.append((task, *overrides))
        return SimpleNamespace(returncode=1, stderr="error: no data")

    monkeypatch.setattr(narrow, "run_sh", run_sh)
    return calls


def rerun(tmp_path: Path, task: str = "pytorch", environment: dict | None = None, **params: object) -> None:
    settings = {"params": vars(Params()) | params, "data": {"dataset": "mnist"}, "environment": environment or {}}
    settings["output"] = {"data_path": str(tmp_path)}
    facts = {"task": task, "config": settings, "framework": {"device": "cpu"}}
    path = tmp_path / "outputs" / "pytorch" / "1"
    run: Any = SimpleNamespace(path=path, experiment=facts, states={0: tmp_path / "state"})
    narrow._rerun(run, 0, 1, tmp_path / "scratch")


def test_what_steers_numerics_is_as_it_was(started: list, tmp_path: Path) -> None:
    with pytest.raises(ReproError, match="cannot be rerun here: no data"):
        rerun(tmp_path, environment={"OMP_DYNAMIC": "TRUE"}, seed=7)
    assert {"params.seed=7", '++environment.OMP_DYNAMIC="TRUE"', 'data.dataset="mnist"'} <= {*started[0]}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"environment": {"LD_PRELOAD": "x.so"}}, "its environment.LD_PRELOAD, which can do more than steer numerics"),
        ({"environment": {"TF_PLUGGABLE_DEVICE_LIBRARY_PATH": "x"}}, "environment.TF_PLUGGABLE_DEVICE_LIBRARY_PATH"),
        ({"environment": {"OMP_NUM_THREADS": "${oc.env:X}"}}, "environment.OMP_NUM_THREADS"),
        ({"x=1 y": 2}, "params.x=1 y"),
        ({"seed": ["${oc.env:X}"]}, "params.seed"),
        ({"task": "record"}, "'record' is none of pytorch, tensorflow, jax"),
    ],
)
def test_nothing_else_is_done(changed: dict, said: str, started: list, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        rerun(tmp_path, **changed)
    assert said in str(refused.value) and not started
