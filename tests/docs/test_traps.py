"""The old traps of docs/reference/traps.md: each is sprung in fresh processes, and gives what the page says it gives.

The scripts are in tests/programs/traps/.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.runs import HANG, PROGRAMS, ROOT

pytestmark = pytest.mark.slow  # they are traps of others' making, and change with others' versions alone

SECOND = "REPRO_TRAPS_ENVIRONMENT"
MIXED = os.environ.get(SECOND)
MODULES = {"pytorch": "torch", "tensorflow": "tensorflow", "jax": "jax"}


def locked(framework: str) -> Path:
    """The Python of the framework's environment."""
    python = ROOT / ".venv" / framework / "bin" / "python"
    if not python.exists():
        pytest.skip(f"no environment .venv/{framework}; make it with: requirements/install.sh {framework}")
    return python


def printed(python: Path | str, script: str, *calls: tuple[object, ...], hash_seed: str | None = "0") -> list[str]:
    """The last line that each call of a script prints; the calls run at the same time, each in a fresh process."""
    cpu = {"CUDA_VISIBLE_DEVICES": "-1"}  # what the page says, it says of the CPU
    env = cpu | {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "KERAS_HOME": os.devnull,
    }
    env |= {"PYTHONHASHSEED": hash_seed} if hash_seed is not None else {}
    command = [str(python), "-s", "-P", str(PROGRAMS / "traps" / f"{script}.py")]
    started = [
        subprocess.Popen(
            [*command, *map(str, call)], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for call in calls
    ]
    done = [(process.communicate(timeout=HANG), process.returncode) for process in started]
    for (_, errors), code in done:
        assert code == 0, errors
    return [output.splitlines()[-1] for (output, _), _ in done]


def test_the_order_of_a_set() -> None:
    here = sys.executable
    first, second, too_late = printed(here, "hash_order", (), (), ("0",), hash_seed=None)
    fixed, again = printed(here, "hash_order", (), ())
    assert sorted(json.loads(first)) == sorted(json.loads(second)) == sorted(json.loads(fixed))
    assert first != second
    assert fixed == again
    assert too_late != fixed


@pytest.mark.slow
def test_tf_data() -> None:
    first, second = map(json.loads, printed(locked("tensorflow"), "tf_data", (), ()))
    for switch in ("seeds", "strict"):
        same = {name: orders == second[switch][name] for name, orders in first[switch].items()}
        strict = switch == "strict"
        assert same == {
            "shuffle": True,
            "shuffle once": True,
            "map, any order": strict,
            "map": True,
            "noise": strict,
            "stateless noise": True,
        }
        epochs = first[switch]
        assert epochs["shuffle"][0] != epochs["shuffle"][1]
        assert epochs["shuffle once"][0] == epochs["shuffle once"][1]
        assert epochs["map"] == [sorted(epochs["map"][0])] * 2
        assert (epochs["map, any order"][0] == epochs["map"][0]) is strict
        assert sorted(epochs["noise"][0]) == sorted(epochs["noise"][1])  # the same numbers each epoch
    assert first["strict"]["noise"][0] == first["strict"]["noise"][1]


def test_loader_workers_and_numpy() -> None:
    first, second = map(json.loads, printed(locked("pytorch"), "loader_workers", (), ()))
    assert {name: drawn == second[name] for name, drawn in first.items()} == {
        "numpy seeded": False,
        "global": True,
        "own": True,
        "remedy": True,
        "one worker": True,
    }
    for name in ("global", "remedy"):  # no worker repeats another, no epoch the one before
        drawn = [number for epoch in first[name] for number in epoch]
        assert len(set(drawn)) == len(drawn)
    (a, b, c, d), again = first["own"]
    assert a == b != c == d  # samples 0 and 2 come from one worker, 1 and 3 from the other
    assert again == [a, b, c, d]
    assert first["one worker"] != first["remedy"]


@pytest.mark.slow
def test_keras_resumes_to_other_weights(tmp_path: Path, data_dir: Path) -> None:
    python = locked("tensorflow")
    (line,) = printed(python, "keras_resume", ("whole", tmp_path, data_dir))
    whole = json.loads(line)
    (line,) = printed(python, "keras_resume", ("resumed", tmp_path, data_dir))
    same = {how: result["weights"] == whole["weights"] for how, result in json.loads(line).items()}
    assert same == {"weights": False, "model": False, "model, orders": False, "model, orders, dropout": True}


@pytest.mark.slow
def test_a_keras_script_without_seeds(data_dir: Path) -> None:
    first, second = map(json.loads, printed(locked("tensorflow"), "unseeded", (data_dir,), (data_dir,)))
    same = {how: result["weights"] == second[how]["weights"] for how, result in first.items()}
    assert same == {"unseeded": False, "seeds": True, "strict": True}


two_in_one = pytest.mark.skipif(
    not MIXED, reason=f"{SECOND} names no environment of all frameworks: docs/reference/traps.md"
)


def mixed() -> Path:
    python = Path(MIXED or "") / "bin" / "python"
    assert python.exists(), f"{SECOND}={MIXED}: there is no {python}; docs/reference/traps.md says how to make one"
    return python


@two_in_one
@pytest.mark.parametrize("framework", MODULES)
def test_a_second_framework_changes_no_bit(framework: str, workspace: Path) -> None:
    own = MODULES[framework]
    others = [module for module in MODULES.values() if module != own]
    calls = []
    for name, imports in {"alone": [], "after": others, "before": [own, *others]}.items():
        folder = workspace / name
        folder.mkdir()
        (folder / "data").symlink_to(workspace / "data")
        calls.append((framework, folder, *imports))
    alone, after, before = printed(mixed(), "second_framework", *calls)
    assert alone.startswith("fingerprint sha256:")
    assert alone == after == before


@two_in_one
def test_what_leaks_from_one_framework_to_the_rest() -> None:
    (line,) = printed(mixed(), "second_framework", ("leaks",))
    assert json.loads(line) == {
        "import": ["TF2_BEHAVIOR"],
        "torch.use_deterministic_algorithms": ["torch"],
        "torch.manual_seed": [],
        "tf.config.experimental.enable_op_determinism": ["tensorflow"],
        "tf.random.set_seed": [],
        "keras.utils.set_random_seed": ["numpy's generator"],
        "jax_default_matmul_precision": [],
        "torch.set_flush_denormal": ["numpy's denormals"],
    }
