"""Whole runs in portable numerics: the published bits in every framework, and one from another."""

import json
from pathlib import Path

import pytest

from repro.frameworks import FRAMEWORKS
from repro.run import golden
from support.runs import Run

OTHERWISE = ("params.threads=1", "params.num_workers=1", "params.batch_size_test=313")


@pytest.mark.parametrize("framework", FRAMEWORKS)
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


@pytest.mark.parametrize(("samples", "epochs"), [(80, 1), pytest.param(336, 2, marks=pytest.mark.slow)])
def test_a_smaller_last_batch(run: Run, samples: int, epochs: int) -> None:
    keys = ("params.numerics=portable", "params.batch_size_train=64",
            f"data.train_samples={samples}", f"params.n_epochs={epochs}")  # fmt: skip
    runs = [run(framework, *keys) for framework in FRAMEWORKS]
    assert [done.returncode for done in runs] == [0, 0, 0], [done.stderr for done in runs]
    assert len({done.stdout for done in runs}) == 1


def test_a_run_goes_through_all_three_frameworks(run: Run, workspace: Path) -> None:
    adam = ("params.numerics=portable", "params.optimizer=adam", "params.learning_rate=0.001")
    taken = "never"
    for framework, steps in (("pytorch", 10), ("jax", 25), ("tensorflow", 100)):
        done = run(framework, *adam, f"params.max_steps={steps}", f"params.resume={taken}")
        assert done.returncode == 0, done.stderr
        (taken,) = map(str, workspace.glob(f"model/{framework}/*.safetensors"))
    assert done.stdout.split()[1] == golden.read("mnist")["adam/step-100"]


def test_the_other_network_and_optimizer(run: Run) -> None:
    keys = ("params.numerics=portable", "params.model=convnet", "params.optimizer=adadelta", "params.learning_rate=1",
            "params.batch_size_train=16", "data.train_samples=48", "params.n_epochs=1")  # fmt: skip
    runs = [run(framework, *keys) for framework in FRAMEWORKS]
    assert [done.returncode for done in runs] == [0, 0, 0], [done.stderr for done in runs]
    assert len({done.stdout for done in runs}) == 1
