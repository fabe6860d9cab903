"""Steps that a script reports with repro.watch."""

from pathlib import Path

import pytest

import repro
from repro.record import lines
from support.observed import HERE, ended, observed, start, steps, watched
from support.runs import some


def seen(python: str, tmp_path: Path, text: str, **env: str) -> dict[int, dict[str, dict[str, str]]]:
    """The hashes of each step that a script shows."""
    script = tmp_path / "a.py"
    script.write_text(text)
    return steps(observed(python, tmp_path / "seen", str(script), **env)[1])


def test_nested_arrays_and_numbers(tmp_path: Path) -> None:
    text = """
import numpy as np, repro
for step in range(3):
    repro.watch(step, {"layers": [{"w": np.full(3, step)}, {"w": np.ones(2, np.float32)}], "rate": 0.5, "n": (step,)})
"""
    result = seen(HERE, tmp_path, text)
    assert [*result] == [0, 1, 2] and result[2].keys() == {"weights"}
    names = ["watch.layers.0.w", "watch.layers.1.w", "watch.n.0", "watch.rate"]
    assert sorted(result[1]["weights"]) == names
    changed = {name for name in names if result[1]["weights"][name] != result[2]["weights"][name]}
    assert changed == {"watch.layers.0.w", "watch.n.0"}


def test_the_generators_before_each_step(tmp_path: Path) -> None:
    text = (
        "import random, repro\nrandom.seed(0)\nfor step in (1, 2, 3):\n    repro.watch(step, {})\n    random.random()\n"
    )
    states = [hashes["generator"]["python"] for hashes in seen(HERE, tmp_path, text).values()]
    assert len(set(states)) == 3


def test_every_nth_step_and_the_first_call(tmp_path: Path) -> None:
    text = "import repro\nfor step in range(7, 31): repro.watch(step, {'w': step})\n"
    assert [*seen(HERE, tmp_path, text, REPRO_OBSERVE_EVERY="10")] == [7, 10, 20, 30]


FRAMEWORKS = {
    "pytorch": ("import torch; state = torch.nn.Linear(2, 1)", {"watch.weight", "watch.bias"}),
    "jax": (
        "import collections, jax.numpy as jnp\n"
        "state = collections.namedtuple('S', 'w b')(jnp.ones(2), {'c': jnp.ones(1)})",
        {"watch.0", "watch.1.c"},
    ),
    "tensorflow": (
        "import keras, tensorflow as tf\n"
        "network = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, name='d')])\n"
        "state = {'m': network, 's': tf.sparse.eye(2), 'r': tf.ragged.constant([[1.0], []])}",
        {"watch.m.sequential/d/kernel", "watch.m.sequential/d/bias"}
        | {f"watch.{name}" for name in ("s.0", "s.1", "s.2", "r.0", "r.1")},
    ),
}


@pytest.mark.parametrize("framework", some(FRAMEWORKS, "pytorch", "jax", deep=["tensorflow"]))
def test_what_a_framework_has(framework: str, tmp_path: Path) -> None:
    make, names = FRAMEWORKS[framework]
    script = tmp_path / "a.py"
    script.write_text(f"import repro\n{make}\nrepro.watch(1, state)\n")
    result = steps(watched(framework, tmp_path / "seen", str(script))[1])
    assert result[1]["weights"].keys() == names


def test_without_record_it_does_nothing() -> None:
    class Untouched:
        def __getattr__(self, name: str) -> None:
            raise AssertionError(name)

    repro.watch(1, Untouched())


@pytest.mark.parametrize("step", [1.5, "1", None])
def test_a_step_is_a_whole_number(step: object) -> None:
    with pytest.raises(TypeError):
        repro.watch(step, {})  # type: ignore[arg-type]


def test_what_has_no_hash_is_not_seen(tmp_path: Path) -> None:
    script = tmp_path / "a.py"
    script.write_text("import repro\nrepro.watch(1, {'model': object()})\n")
    _, written = observed(HERE, tmp_path / "seen", str(script))
    (note,) = [line for line in written if line["kind"] == "note"]
    assert (note["text"], note["unseen"]) == ("watch.model is of type object, which is not hashed", 1)


def test_a_number_that_no_step_has_is_not_seen(tmp_path: Path) -> None:
    script = tmp_path / "a.py"
    script.write_text("import repro\nfor step in (-1, 1, 2**60): repro.watch(step, {'w': step})\n")
    _, written = observed(HERE, tmp_path / "seen", str(script))
    assert [*steps(written)] == [1]
    (note,) = [line for line in written if line["kind"] == "note"]
    assert "below 0 or above 2^53" in note["text"] and note["unseen"] == 1


def test_a_number_that_comes_again_loses_nothing(tmp_path: Path) -> None:
    """As where each epoch counts from 1."""
    script = tmp_path / "a.py"
    script.write_text("import repro\nfor epoch in range(2):\n    for step in (1, 2): repro.watch(step, {'w': epoch})\n")
    ended(start([HERE, str(script)], tmp_path / "seen"))
    (process,) = lines.processes(tmp_path / "seen")
    assert process.steps[1]["weights"].keys() == {"watch.w", "watch.w'"}
