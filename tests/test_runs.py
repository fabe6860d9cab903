"""repro.runs: what a machine lacks for a plan, and values as Hydra reads them."""

import shutil
from pathlib import Path

import pytest

from repro import config, runs
from repro.questions import Plan


@pytest.fixture
def runner(tmp_path: Path) -> runs.Runner:
    for probe in (runs.gpus, runs._emulator, runs._docker):
        probe.cache_clear()
    return runs.Runner(config.Config(verify=config.Verify(sif="/no/such.sif")), tmp_path, [], tmp_path)


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (Plan("in Docker", engine="docker"), "Docker is not installed"),
        (Plan("in Apptainer", engine="apptainer"), "Apptainer is not installed"),
        (Plan("Haswell", engine="qemu"), "no qemu-user on this machine"),
        (Plan("other", engine="other"), "verify.others names no other environment for jax"),
    ],
)
def test_a_machine_that_has_nothing(
    plan: Plan, said: str, runner: runs.Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".venv" / "jax").mkdir(parents=True)
    (tmp_path / ".venv" / "jax" / "installed").touch()
    monkeypatch.setattr(runs, "ROOT", tmp_path)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert said in (runner.missing("jax", plan) or "")
    assert runner.missing("jax", Plan()) is None


def test_no_environment(runner: runs.Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "ROOT", tmp_path)
    assert runner.missing("jax", Plan()) == "no environment for jax: requirements/install.sh jax"


def test_an_engine_without_its_image(runner: runs.Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(runs, "_ends_well", lambda *command: "inspect" not in command)
    assert runner.missing("jax", Plan("in Docker", engine="docker")) == "no Docker image repro:0.1.0: make image"
    assert runner.missing("jax", Plan("in Apptainer", engine="apptainer")) == "no image such.sif: make sif"
    monkeypatch.setattr(runs, "_ends_well", lambda *_: False)
    runs._docker.cache_clear()
    assert runner.missing("jax", Plan("in Docker", engine="docker")) == "no Docker engine answers"


@pytest.mark.parametrize(
    "value", ["/a b/c", "a=b,c", 'say "no"', "back\\slash", 'a\\"b', "end\\", "{x}", "[y]", "$z", "'"]
)
def test_a_value_that_hydra_reads_as_it_is(value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKSPACE_PATH", str(tmp_path))
    composed = config.compose_config(tmp_path, [f"output.data_path={runs.quoted(value)}"])
    assert composed.output.data_path == value
