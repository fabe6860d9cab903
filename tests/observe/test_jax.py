"""What is seen of training in JAX, with Optax, Flax and Equinox, and that seeing it changes nothing."""

import json
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from observed import SCRIPTS, interpreter, notes, observed, steps

LOOPS = str(SCRIPTS / "jax_loops.py")
COUNT = 6
SCENARIOS = ["eager", "jit", "scan", "linen", "nnx"]


def loops(folder: Path, *scenarios: str, **env: str) -> tuple[list[tuple[list[Any], dict[str, str]]], list[Any]]:
    """For each scenario its steps and the hashes of its last weights; and all lines."""
    printed, written = observed(interpreter("jax"), folder, LOOPS, *scenarios, **env)
    seen = steps(written)
    assert list(seen) == list(range(COUNT * len(scenarios) + 1))  # in order, none twice
    weights = [json.loads(line)[2] for line in printed.splitlines()]
    return [
        ([seen[place * COUNT + n] for n in range(1, COUNT + 1)], last) for place, last in enumerate(weights)
    ], written


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[tuple[list[Any], dict[str, str]]], list[Any]]:
    return loops(tmp_path_factory.mktemp("jax"), *SCENARIOS)


def check(place: int, seen: list[Any], weights: dict[str, str]) -> None:
    assert seen[-1]["weights"] == {f"{place}.{name}": code for name, code in weights.items()}
    moved = [line["weights"] for line in seen]
    assert all(a != b for a, b in pairwise(moved))
    assert all(set(line["gradients"]) == set(line["weights"]) for line in seen)
    assert all(any(".update." in name for name in line["optimizer"]) for line in seen)
    assert all(any(".state." in name for name in line["optimizer"]) for line in seen)
    assert ("initial weights" in seen[0]) == (place > 0)  # the first one's are in line 0
    assert not any("initial weights" in line for line in seen[1:])


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_each_step_is_seen_once(found: Any, scenario: str) -> None:
    place = SCENARIOS.index(scenario)
    check(place, *found[0][place])


def test_the_generators_of_a_step_outside_of_jit(found: Any) -> None:
    eager, compiled = found[0][0][0], found[0][1][0]
    assert all("generator" not in line for line in compiled)
    assert eager[0].get("generator", {}).keys() <= {"python", "numpy"}
    said = notes(found[1])
    assert "JAX: batches are not observed" in said
    assert any("in a compiled step" in note for note in said)


def test_equinox(tmp_path: Path) -> None:
    python = interpreter("jax")
    done = subprocess.run([python, "-c", "import equinox"], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("no equinox in .venv/jax")
    ((seen, weights),), _ = loops(tmp_path, "equinox")
    check(0, seen, weights)
