"""Runs of the reference trainers.

What a machine lacks for a change, and how a run ended.
"""

import shutil
import sys
from pathlib import Path

import pytest

from repro.machine import gpu
from repro.trainers.loop import config
from repro.trainers.loop.call import quoted
from repro.trainers.verify import runs
from repro.trainers.verify.questions import BASELINE
from repro.verify.questions import Change
from repro.verify.results import Run
from support.runs import HANG, PROGRAMS


@pytest.fixture
def runner(tmp_path: Path) -> runs.Runner:
    for probe in (gpu.count, runs._emulator, runs._docker):
        probe.cache_clear()
    return runs.Runner(config.Config(verify=config.Verify(sif="/no/such.sif")), tmp_path, [], tmp_path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (Change("in Docker", runtime="docker"), "Docker is not installed"),
        (Change("in Apptainer", runtime="apptainer"), "Apptainer is not installed"),
        (Change("Haswell", runtime="qemu"), "no qemu-user on this machine"),
        (Change("other", runtime="other"), "verify.others names no other environment for jax"),
    ],
)
def test_a_machine_that_has_nothing(
    change: Change, said: str, runner: runs.Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".venv" / "jax").mkdir(parents=True)
    (tmp_path / ".venv" / "jax" / "installed").touch()
    monkeypatch.setattr(runs, "ROOT", tmp_path)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert said in (runner.missing("jax", change) or "")
    assert runner.missing("jax", BASELINE) is None


def test_no_environment(runner: runs.Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "ROOT", tmp_path)
    assert runner.missing("jax", BASELINE) == "no environment for jax: requirements/install.sh jax"


def test_a_container_runtime_without_its_image(runner: runs.Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(runs, "_ends_well", lambda *command: "inspect" not in command)
    assert runner.missing("jax", Change("in Docker", runtime="docker")) == "no Docker image repro:0.1.0: make image"
    assert runner.missing("jax", Change("in Apptainer", runtime="apptainer")) == "no image such.sif: make sif"
    monkeypatch.setattr(runs, "_ends_well", lambda *_: False)
    runs._docker.cache_clear()
    assert runner.missing("jax", Change("in Docker", runtime="docker")) == "no Docker daemon answers"


@pytest.mark.parametrize(
    "value", ["/a b/c", "a=b,c", 'say "no"', "back\\slash", 'a\\"b', "end\\", "{x}", "[y]", "$z", "'"]
)
def test_a_value_that_hydra_reads_as_it_is(value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKSPACE_PATH", str(tmp_path))
    composed = config.compose_config(tmp_path, [f"output.data_path={quoted(value)}"])
    assert composed.output.data_path == value


TRAINED = f'#!/bin/sh\nexec "{sys.executable}" "{PROGRAMS}/finished_training.py" "$(dirname "$0")" "$@"\n'


def ended(script: str, change: Change, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """What verify makes of a run where run.sh is `script`."""
    root = folder / "root"
    root.mkdir()
    (root / "run.sh").write_text(script)
    (root / "run.sh").chmod(0o755)
    monkeypatch.setattr(runs, "ROOT", root)
    settings, output = config.Verify(others={"jax": "qemu python"}), config.Output(data_path=str(folder / "data"))
    runner = runs.Runner(config.Config(verify=settings, output=output), folder, [], folder / "runs")
    return runner.run(["jax"], "portable", change, "other")


def test_a_run_names_what_it_ran_and_no_folder_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = ended(TRAINED, Change("other", runtime="other"), tmp_path, monkeypatch)
    assert (run.status, run.label) == ("done", "0.6 on aarch64")
    assert run.command.startswith("REPRO_PYTHON='qemu python' ./run.sh jax --workspace=DIR ")
    assert run.command.endswith(" 'output.data_path=\"DATA\"'")
    assert run.experiment
    assert run.experiment["folders"] == ["DIR/outputs/jax/now", "DATA", ".", f"{tmp_path}/root.old", "~/.rc"]


@pytest.mark.parametrize(
    ("script", "status", "said"),
    [
        ("kill -ILL $$", "refused", "killed by SIGILL: its build needs instructions that this CPU lacks"),
        ("exit 132", "refused", "killed by SIGILL"),  # as a container runtime passes it on
        (
            "echo 'error: RuntimeError: jaxlib was built using AVX instructions, which your CPU lacks' >&2; exit 1",
            "refused",
            "RuntimeError: jaxlib was built using AVX instructions",
        ),
        ("echo results in x >&2; kill -SEGV $$", "failed", "killed by SIGSEGV"),
        ("echo no $2/x >&2; exit 1", "failed", "no --workspace=DIR/x"),
        ("exit 1", "failed", "it ended with 1"),
        (f"exec sleep {HANG}", "failed", "verify: no end after 0.5 seconds; lower verify.steps"),
    ],
)
def test_what_an_emulated_cpu_cannot_run_is_refused(
    script: str, status: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "SECONDS_TO_RUN", 0.5 if "sleep" in script else HANG)
    run = ended(f"#!/bin/sh\n{script}\n", Change("Nehalem", runtime="qemu"), tmp_path, monkeypatch)
    assert (run.status, run.fingerprint) == (status, None)
    assert said in (run.error or "")
    assert " -cpu Nehalem' ./run.sh jax " in run.command


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exit 0", "the run ended before it could be killed; raise verify.steps"),
        (f"mkdir -p $2/model/jax; touch $2/model/jax/epoch_1.safetensors; exec sleep {HANG}", "resumed"),
    ],
)
def test_a_run_is_killed_at_its_first_checkpoint_and_resumed(
    script: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resumed = 'case "$*" in *params.resume=auto*) echo error: resumed >&2; exit 1;; esac; set -- $1 ${2#*=}'
    run = ended(f"#!/bin/sh\n{resumed}\n{script}\n", Change("killed", course="kill"), tmp_path, monkeypatch)
    assert run.status == "failed" and said in (run.error or "")
