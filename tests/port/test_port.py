"""`repro compare --port`: what it prints, its page and its exit codes; and the rounding that it measures."""

from pathlib import Path

import numpy as np
import pytest

from support.commands import repro
from support.ports import JAX, KERAS, TORCH, Written, compared, drawn, network, trained

ROWS = drawn(6, 8)
GRADIENTS = [drawn(16, 8, seed=11), drawn(16, seed=12), drawn(4, 16, seed=13), drawn(4, seed=14)]


def descended(side: Written, rate: float = 0.1) -> Written:
    return trained(side, GRADIENTS, lambda w, g: (w - rate * g, {}))


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    """Records of PyTorch, of JAX, of JAX with another activation, and of one whose weights are drawn anew."""
    descended(network(TORCH, ROWS, np.tanh)).at(tmp_path / "torch")
    descended(network(JAX, ROWS, np.tanh)).at(tmp_path / "jax")
    descended(network(JAX, ROWS, lambda x: np.maximum(x, 0))).at(tmp_path / "relu")
    Written(KERAS, {"x.kernel": drawn(8, 16, seed=9)}, {}).at(tmp_path / "small")
    return tmp_path


def test_two_sides_that_agree(folders: Path) -> None:
    done = repro("compare", "--port", "torch", "jax", cwd=folders)
    assert done.returncode == 0, done.stderr
    assert "agrees: the first step is the same on both sides" in done.stdout
    assert "fc1.weight = Dense_0.kernel (transposed)" in done.stdout


def test_two_sides_that_differ_and_the_page(folders: Path) -> None:
    page = folders / "a page.html"
    done = repro("compare", "--port", "--page", str(page), "torch", "relu", cwd=folders)
    assert done.returncode == 3, done.stderr
    assert "differs: first seen in the forward pass: after fc1 of A, Dense_0 of B" in done.stdout
    assert "why     the activation is tanh in A, relu in B" in done.stdout
    text = page.read_text()
    assert '<tr class="first" data-layer="fc2">' in text
    assert "the activation is tanh in A, relu in B" in text
    assert "http" not in text.replace("http-equiv", "")


def test_a_page_that_cannot_be_written(folders: Path) -> None:
    done = repro("compare", "--port", "--page", "none/page.html", "torch", "jax", cwd=folders)
    assert done.returncode == 2
    assert "--page none/page.html: No such file or directory; name a file in a folder that exists" in done.stderr


def test_weights_that_cannot_be_matched(folders: Path) -> None:
    """Of one size, and drawn anew: they are matched by shape, and the rest is alone."""
    done = repro("compare", "--port", "torch", "small", cwd=folders)
    assert done.returncode == 4
    assert "inconclusive" in done.stdout
    assert "in A alone: `fc1.bias`, `fc2.weight`, `fc2.bias`" in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--pairs", "x", "torch", "jax"), "--pairs and --page go with --port"),
        (("--port", "--narrow", "torch", "jax"), "--narrow and --bisect run commands again"),
        (("--port", "torch"), "two runs' folders must be given"),
        (("--port", "torch", "none"), "holds no record"),
    ],
)
def test_wrong_options(words: tuple[str, ...], message: str, folders: Path) -> None:
    done = repro("compare", *words, cwd=folders)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_record_without_arrays(folders: Path) -> None:
    for file in (folders / "jax" / "kept").iterdir():
        file.unlink()
    done = repro("compare", "--port", "torch", "jax", cwd=folders)
    assert done.returncode == 2
    assert "keeps no arrays of weights; record it anew with --modules 1" in done.stderr


def rounded(side: Written, error: float) -> Written:
    """The same side, whose float32 results are this far from their float64 ones, in a direction that differs by side."""
    for call in side.calls:
        if call["module"]:
            y = call["outputs"][""]
            call["outputs"] = {
                "": y
                + error * drawn(*y.shape, seed=len(side.frameworks["torch" if "torch" in side.frameworks else "jax"]))
            }
    return side


@pytest.mark.parametrize(("errors", "agrees"), [((1e-4, 1e-4), True), ((1e-7, 1e-4), False), ((0.0, 1e-4), False)])
def test_two_sides_agree_within_the_rounding_that_both_measure(
    errors: tuple[float, float], agrees: bool, tmp_path: Path
) -> None:
    """The model's result is that of its last layer; a side that rounds much more than the other is a difference."""
    a, b = rounded(network(TORCH, ROWS), errors[0]), rounded(network(JAX, ROWS), errors[1])
    for side in (a, b):
        side.calls[0]["outputs"] = side.calls[-1]["outputs"]
    port = compared(tmp_path, descended(a), descended(b))
    assert (port.first is None) == agrees


def test_what_comes_first_is_named_though_more_differs(tmp_path: Path) -> None:
    """Another batch makes another loss, and other gradients."""
    port = compared(tmp_path, descended(network(TORCH, ROWS)), descended(network(JAX, ROWS * 2), rate=0.2))
    assert port.first is not None
    assert port.first.name == "batch"
    assert [quantity.name for quantity in port.quantities if quantity.verdict == "differs"] == [
        "batch",
        "forward pass",
        "weights of step 2",
    ]
