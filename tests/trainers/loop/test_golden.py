"""repro.trainers.loop.golden: which runs have a published fingerprint, and what is said of it."""

from pathlib import Path

import pytest

from repro.fingerprint import fingerprint
from repro.trainers.loop import golden, randomness
from repro.trainers.loop.config import Config, Data, Params

STEPS = 1875


def portable(**params) -> Config:
    return Config(Params(**{"numerics": "portable"} | params))


@pytest.mark.parametrize(
    ("checked", "step", "expected"),
    [
        (portable(), 100, "sgd/step-100"),
        (portable(), 2 * STEPS, "sgd/epoch-2"),
        (portable(threads=1, num_workers=3, batch_size_test=7, device="cpu", n_epochs=9), 1, "sgd/step-1"),
        (portable(optimizer="adam", learning_rate=0.001, momentum=0.9), 10, "adam/step-10"),
        (portable(optimizer="adam"), 10, None),
        (portable(seed=1), 100, None),
        (portable(learning_rate=0.1), 100, None),
        (portable(batch_size_train=64), 100, None),
        (portable(numerics="deterministic"), 100, None),
        (Config(Params(numerics="portable"), Data(train_samples=600)), 100, None),
    ],
)
def test_name(checked: Config, step: int, expected: str | None) -> None:
    assert golden.name(checked, step, STEPS) == expected


def test_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(golden, "FOLDER", tmp_path)
    (tmp_path / "mnist.txt").write_text("# a remark\n\nsgd/step-5 sha256:aa\n")
    assert golden.verdict(portable(), 5, STEPS, "sha256:aa") == (
        "this is the published fingerprint (golden/mnist.txt, sgd/step-5)"
    )
    assert golden.verdict(portable(), 5, STEPS, "sha256:bb") == (
        "this differs from the published one, sha256:aa (golden/mnist.txt, sgd/step-5): see compare"
    )
    assert golden.verdict(portable(), 6, STEPS, "sha256:aa") is None
    fashion = Config(Params(numerics="portable"), Data("fashion_mnist"))
    assert golden.verdict(fashion, 5, STEPS, "sha256:aa") is None


def test_the_published_initial_weights() -> None:
    assert golden.read("mnist")["initial"] == fingerprint(randomness.initial_weights(0, "lenet"))
