"""Whole runs in portable numerics: the published bits in every framework, and one from another."""

import json
from pathlib import Path

import pytest

from repro.run import golden
from support.runs import Run, alone, fingerprint, needs, run_sh, some

FRAMEWORKS = ("pytorch", "tensorflow", "jax")
OTHERWISE = ("params.threads=1", "params.num_workers=1", "params.batch_size_test=313")


@pytest.mark.parametrize("framework", some(FRAMEWORKS, "pytorch", "jax"))  # TensorFlow gives them below, resumed
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


@pytest.mark.slow  # test_ranks.py has a smaller last batch in all frameworks, too
@pytest.mark.parametrize(("samples", "epochs"), [(80, 1), (336, 2)])
def test_a_smaller_last_batch(run: Run, samples: int, epochs: int) -> None:
    keys = ("params.numerics=portable", "params.batch_size_train=64",
            f"data.train_samples={samples}", f"params.n_epochs={epochs}")  # fmt: skip
    runs = [run(framework, *keys) for framework in FRAMEWORKS]
    assert [done.returncode for done in runs] == [0, 0, 0], [done.stderr for done in runs]
    assert len({done.stdout for done in runs}) == 1


ADAM = ("params.numerics=portable", "params.optimizer=adam", "params.learning_rate=0.001")


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory, data_dir: Path) -> Path:
    """PyTorch's checkpoint after 10 steps of Adam."""
    needs("pytorch")
    workspace = tmp_path_factory.mktemp("taken")
    (workspace / "data").symlink_to(data_dir)
    fingerprint(run_sh("pytorch", *ADAM, "params.max_steps=10", workspace=workspace))
    (path,) = workspace.glob("model/pytorch/*.safetensors")
    return path


@pytest.mark.parametrize("framework", ["jax", "tensorflow"])
def test_a_checkpoint_of_another_framework_resumes_to_the_published_bits(framework: str, taken: Path, run: Run) -> None:
    done = run(framework, *ADAM, "params.max_steps=100", f"params.resume={taken}")
    assert fingerprint(done).split()[1] == golden.read("mnist")["adam/step-100"]


@pytest.mark.slow  # tests/portable has its operations and its optimizer in all frameworks
@pytest.mark.parametrize("framework", ["pytorch", "tensorflow"])
def test_the_other_network_and_optimizer(framework: str, run: Run) -> None:
    keys = (
        "params.numerics=portable",
        "params.model=convnet",
        "params.optimizer=adadelta",
        "params.learning_rate=1",
        "params.batch_size_train=16",
        "data.train_samples=48",
        "params.n_epochs=1",
    )
    with alone("convnet") as bits:
        if not bits.exists():
            bits.write_text(fingerprint(run("jax", *keys)))
    assert fingerprint(run(framework, *keys)) == bits.read_text()
