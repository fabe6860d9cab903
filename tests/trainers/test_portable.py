"""Whole runs in portable numerics: the published bits in every framework, and one from another."""

import json
from functools import cache
from pathlib import Path

import pytest

from repro.frameworks import FRAMEWORKS
from repro.trainers.loop import golden
from support.programs import program
from support.runs import Run, fingerprint, needs, run_sh, some

OTHERWISE = ("params.threads=1", "params.num_workers=1", "params.batch_size_test=313")


@pytest.mark.parametrize("framework", some(FRAMEWORKS, "pytorch", deep=["jax"]))  # TensorFlow's are in test_examples.py
@pytest.mark.parametrize(
    "keys", [(), pytest.param(OTHERWISE, marks=pytest.mark.slow)], ids=["as it comes", "otherwise"]
)
def test_every_framework_gives_the_published_bits(
    framework: str, keys: tuple[str, ...], run: Run, workspace: Path
) -> None:
    done = run(framework, "params.numerics=portable", "params.max_steps=100", *keys)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[1] == golden.read("mnist")["sgd/step-100"]
    assert "this is the published fingerprint (golden/mnist.txt, sgd/step-100)" in done.stderr
    assert "params.learning_rate=0.01 counts as 0.009999999776482582, the nearest float32" in done.stderr
    (record,) = workspace.glob(f"outputs/{framework}/*/experiment.json")
    assert json.loads(record.read_text())["portable"]["params.learning_rate"] == 0.009999999776482582


@cache
def trained(framework: str, data: Path, *runs: str) -> dict[str, list]:
    """Of short runs, in one process, the fingerprint and what the evaluation found."""
    return json.loads(program(framework, "portable_training.py", framework, str(data), *runs))


@pytest.mark.slow  # a minute, most of it XLA's compiler; tests/portable has all that these runs are made of
@pytest.mark.parametrize("name", ["smaller last batch", "convnet"])
def test_short_runs_are_the_same_in_every_framework(name: str, data_dir: Path) -> None:
    """A network and an optimizer other than the default, and a last batch that is smaller."""
    results = [trained(framework, data_dir, "smaller last batch", "convnet")[name] for framework in FRAMEWORKS]
    assert results[0] == results[1] == results[2]


@pytest.mark.slow
def test_smaller_last_batches_of_several_calls_and_epochs(data_dir: Path) -> None:
    results = [trained(framework, data_dir, "smaller last batches") for framework in FRAMEWORKS]
    assert results[0] == results[1] == results[2]


ADAM = ("params.numerics=portable", "params.optimizer=adam", "params.learning_rate=0.001")


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory, data_dir: Path) -> Path:
    """PyTorch's checkpoint after 4 steps of Adam."""
    needs("pytorch")
    workspace = tmp_path_factory.mktemp("taken")
    (workspace / "data").symlink_to(data_dir)
    fingerprint(run_sh("pytorch", *ADAM, "params.max_steps=4", workspace=workspace))
    (path,) = workspace.glob("model/pytorch/*.safetensors")
    return path


@pytest.mark.deep
@pytest.mark.parametrize("framework", some(("jax", "tensorflow"), "jax"))
def test_a_checkpoint_of_another_framework_resumes_to_the_published_bits(framework: str, taken: Path, run: Run) -> None:
    done = run(framework, *ADAM, "params.max_steps=10", f"params.resume={taken}")
    assert fingerprint(done).split()[1] == golden.read("mnist")["adam/step-10"]
