"""Faults that `repro verify` plants in sound trainings: each is seen, or the answer says why not."""

import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from repro import __main__
from repro.plant import controls
from repro.verify import results
from support.observed import interpreter
from support.runs import PROGRAMS

LATE = re.compile("before it could be stopped|nearly done when it was stopped|without effect on [12] step")
"""What is said of a run that was nearly over, or over, when it was to be stopped."""


def verified(framework: str, name: str, *options: str) -> tuple[int, dict[str, Any]]:
    """The exit code, and the answer to `resume` of a program of tests/programs/sound.

    Where it was stopped too late, as on a busy machine, it is asked again with longer pauses between its steps.
    """
    words = [interpreter(framework), str(PROGRAMS / "sound" / f"{name}.py"), "{run}"]
    resume = shlex.join([*words, "--resume"])
    asked = ["--ask", "resume", "--json", "answers.json", "--to", "runs", *options, "--resume", resume, "--", *words]
    for pause in ("0.05", "0.5", "3"):
        shutil.rmtree("runs", ignore_errors=True)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PAUSE", pause)
            code = __main__.main(["verify", *asked])
        answer = json.loads(Path("answers.json").read_text())["answers"][0]
        if not LATE.search(answer["why"]):
            break
    return code, answer


def faults(answer: dict[str, Any], outcome: str = "seen") -> set[str]:
    """The parts with an outcome."""
    return {fault["part"] for fault in answer["controls"]["faults"] if fault["outcome"] == outcome}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("PYTHONPATH", "PYTHONHASHSEED"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_each_fault_in_a_training_of_pytorch_is_seen(here: Path) -> None:
    code, answer = verified("pytorch", "pytorch_small")
    assert (code, answer["answer"]) == (0, "same"), answer["why"]
    assert faults(answer) == {"generator `torch`", "optimizer's slots", "place in the data"}, answer["why"]
    assert "; 3 of 3 planted faults were seen (" in answer["why"]
    written = results.read(here / "runs" / "results.json").answers[0].controls
    assert written and (written.planted, written.seen) == (3, 3)
    assert not [*here.glob("runs/*/stopped"), *here.glob("runs/*/first")]  # copies of checkpoints are gone


@pytest.mark.deep
def test_a_fault_that_changes_nothing_is_not_seen(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = here / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(
        "import sys\n"
        "controls = sys.modules.get('_repro.plant.controls')\n"
        "if controls is not None:\n"
        f"    controls.Control.plant = lambda self, moment, parts: controls.mark('{controls.PLANTED}', moment)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(site))
    code, answer = verified("pytorch", "pytorch_small")
    assert (code, answer["answer"]) == (0, "same")
    assert faults(answer, "not seen") == {"generator `torch`", "optimizer's slots"}
    assert "NOT SEEN, so that *same* says nothing about it: generator `torch`, optimizer's slots" in answer["why"]


@pytest.mark.deep
def test_without_controls_nothing_is_planted(here: Path) -> None:
    code, answer = verified("pytorch", "pytorch_small", "--no-controls")
    assert (code, answer["answer"]) == (0, "same") and "controls" not in answer and "planted" not in answer["why"]
    assert len(results.read(here / "runs" / "results.json").runs) == 3


@pytest.mark.deep
def test_each_part_of_a_training_of_pytorch_is_seen(here: Path) -> None:
    code, answer = verified("pytorch", "pytorch_loop")
    assert (code, answer["answer"]) == (0, "same"), answer["why"]
    assert faults(answer) == {
        *(f"generator `{name}`" for name in ("python", "numpy", "torch")),
        "the loader's generator",
        "optimizer's slots",
        "options of the groups",
        "schedule",
        "GradScaler",
        "buffers",
        "copy of the weights `average`",
        "place in the data",
    }, answer["why"]


KERAS = {"optimizer's slots", "optimizer's iterations", "buffers"}
JAX = {"optimizer's slots"}
ELSEWHERE = {
    ("tensorflow", "keras_backup"): KERAS,
    ("tensorflow", "keras_load"): {*KERAS, "seed generators of the layers"},
    ("jax", "optax_loop"): {*JAX, "optimizer's counts", "keys", "generator `numpy`"},
    ("jax", "flax_linen"): {*JAX, "`batch_stats` of the state", "`step` of the state"},
    ("jax", "flax_nnx"): {*JAX, "optimizer's counts", "generators of the modules", "buffers"},
}
"""Faults that are seen in programs of other frameworks."""
HOLES = {"flax_nnx": {"step of the optimizer"}}
"""Faults that are not seen: no result depends on them, and they are not observed."""


@pytest.mark.deep
@pytest.mark.parametrize(("framework", "name"), ELSEWHERE)
def test_faults_in_trainings_of_keras_and_jax_are_seen(framework: str, name: str, here: Path) -> None:
    code, answer = verified(framework, name)
    assert (code, answer["answer"]) == (0, "same"), answer["why"]
    assert faults(answer) == ELSEWHERE[framework, name], answer["why"]
    assert faults(answer, "not seen") == HOLES.get(name, set())
