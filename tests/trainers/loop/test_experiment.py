"""experiment.json and the environment: the record holds what decides the bits, the environment is what it says."""

import hashlib
import json
import platform
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from repro.machine import facts
from repro.trainers.loop import config, environment, experiment, randomness
from repro.trainers.loop.data import Dataset

INITIAL = "sha256:" + "1" * 64
FACTS: dict[str, object] = {"framework": "Fake", "device": "cpu"}


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    images, labels = np.zeros((9, 28, 28), np.uint8), np.zeros(9, np.int32)
    return Dataset("mnist", images, labels, images, labels, tmp_path, {"train-images": "2" * 64})


def record(dataset: Dataset, **params: object) -> dict[str, Any]:
    checked = config.Config(config.Params(**params))  # type: ignore[arg-type]
    return experiment.record("pytorch", checked, FACTS, dataset, 2, INITIAL)


def test_the_record_holds_what_was_asked_for(dataset: Dataset):
    result = record(dataset, seed=7, optimizer="adam")
    assert result["task"] == "pytorch"
    assert result["framework"] == FACTS
    assert result["config"]["params"]["seed"] == 7
    assert set(result["config"]["params"]) == {key.split(".")[1] for key in config.KEYS if key.startswith("params.")}
    assert result["config"]["data"]["dataset"] == "mnist"


def test_the_record_holds_the_fingerprints(dataset: Dataset):
    order = b"".join(randomness.order(7, epoch, 9).astype("<i4").tobytes() for epoch in (1, 2))
    assert record(dataset, seed=7)["sha256"] == {
        "data": dataset.sha256,
        "batch_order": f"sha256:{hashlib.sha256(order).hexdigest()}",
        "initial_weights": INITIAL,
        "final_weights": None,
    }


def test_the_record_holds_the_machine(dataset: Dataset):
    recorded = record(dataset)
    assert recorded["versions"]["python"] == platform.python_version()
    assert recorded["versions"]["numpy"] == np.__version__
    assert "torch" not in recorded["versions"]  # not installed here
    assert recorded["cpu"]["architecture"] == platform.machine()
    assert 1 <= recorded["cpu"]["usable"] <= recorded["cpu"]["logical"]
    assert {"vendor", "model", "cores"} <= set(recorded["cpu"])
    flags = Path("/proc/cpuinfo").read_text().split()
    assert recorded["cpu"]["instruction_set"] in flags
    assert not {"avx512f", "avx2"} & set(flags) or recorded["cpu"]["instruction_set"] in ("avx512f", "avx2")
    assert all({"internal_api", "version", "num_threads"} == set(pool) for pool in recorded["thread_pools"])


def test_an_emulated_cpu_is_not_taken_for_its_host(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts._multiarray_umath, "__cpu_features__", {"AVX": True, "SSE42": True})
    monkeypatch.setenv("REPRO_EMULATOR", "qemu-x86_64 -cpu SandyBridge")
    recorded = record(dataset)["cpu"]
    assert (recorded["vendor"], recorded["model"], recorded["instruction_set"]) == (
        None,
        "qemu-x86_64 -cpu SandyBridge",
        "avx",
    )
    monkeypatch.delenv("REPRO_EMULATOR")
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")  # beside the file of an x86-64 machine
    recorded = record(dataset)["cpu"]
    assert (recorded["architecture"], recorded["vendor"], recorded["model"]) == ("aarch64", None, "emulated")


@pytest.mark.skipif(Path("/proc/driver/nvidia/version").exists(), reason="this machine has an NVIDIA driver")
def test_a_machine_without_a_gpu_has_an_empty_list(dataset: Dataset):
    assert record(dataset)["gpu"] == []


def test_the_record_holds_the_variables_that_decide_and_those_ignored(dataset: Dataset, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("XLA_FLAGS", "--x")
    monkeypatch.setenv("EDITOR", "ed")
    monkeypatch.setenv("REPRO_IGNORED_TF_CPP_MIN_LOG_LEVEL", "0")
    found = record(dataset)
    assert (found["environment"]["OMP_NUM_THREADS"], found["environment"]["XLA_FLAGS"]) == ("3", "--x")
    assert "EDITOR" not in found["environment"]
    assert found["ignored"]["TF_CPP_MIN_LOG_LEVEL"] == "0"


def test_written_is_what_was_recorded(tmp_path: Path, dataset: Dataset):
    recorded = record(dataset)
    experiment.write(tmp_path, recorded)
    assert json.loads((tmp_path / "experiment.json").read_text()) == recorded
    experiment.write(tmp_path, recorded | {"task": "jax"})
    assert json.loads((tmp_path / "experiment.json").read_text())["task"] == "jax"
    assert [path.name for path in tmp_path.iterdir()] == ["experiment.json"]


# --- the environment of a framework ---------------------------------------------------------------------------------


def applied(monkeypatch: pytest.MonkeyPatch, task: str, asked: dict[str, str], **params: object) -> dict[str, str]:
    """What environment.apply() sets, in an environment that was empty."""
    variables: dict[str, str] = {}
    monkeypatch.setattr("os.environ", variables)
    environment.apply(task, config.Config(config.Params(**params), environment=asked))  # type: ignore[arg-type]
    return variables


@pytest.mark.parametrize("task", ["pytorch", "tensorflow", "jax"])
def test_threads_are_as_many_as_asked_for(task: str, monkeypatch):
    result = applied(monkeypatch, task, {}, threads=3)
    assert (result["OMP_NUM_THREADS"], result["MKL_NUM_THREADS"]) == ("3", "3")


@pytest.mark.parametrize(("numerics", "present"), [("deterministic", True), ("fast", False)])
def test_deterministic_sets_the_frameworks_variables(numerics: str, present: bool, monkeypatch):
    assert ("CUBLAS_WORKSPACE_CONFIG" in applied(monkeypatch, "pytorch", {}, numerics=numerics)) is present
    xla = applied(monkeypatch, "jax", {}, numerics=numerics).get("XLA_FLAGS", "")
    assert ("--xla_gpu_deterministic_ops=true" in xla) is present


def test_what_the_configuration_asks_for_gets_in(monkeypatch):
    result = applied(monkeypatch, "pytorch", {"OMP_NUM_THREADS": "9", "MINE": "x"}, threads=3)
    assert (result["OMP_NUM_THREADS"], result["MKL_NUM_THREADS"], result["MINE"]) == ("9", "3", "x")


def test_xla_flags_are_added_to_those_that_are_there(monkeypatch):
    flags = applied(monkeypatch, "jax", {"XLA_FLAGS": "--mine"})["XLA_FLAGS"].split()
    assert flags[-1] == "--mine"
    assert "--xla_gpu_deterministic_ops=true" in flags
    assert applied(monkeypatch, "tensorflow", {"XLA_FLAGS": "--mine"})["XLA_FLAGS"] == "--mine"
