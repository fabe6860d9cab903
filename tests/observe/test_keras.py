"""Steps of Keras 3 on each backend, seen without a change."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from repro.observe import keras
from support.observed import SCRIPTS, alone, ended, interpreter, lines, notes, observed, start, steps, watched
from support.runs import ROOT

LOOPS = str(SCRIPTS / "keras_loops.py")
COUNT = 10
COMPARED = ["fit", "fit, XLA", "own, graph"]  # with runs without the observer
EACH = [
    *COMPARED,
    "fit, 5 at a time",
    "fit, eager",
    "fit, own step",
    "own, eager",
    "fit, made late",
    "own, tf.data",
]
WITHOUT_BATCH = ("fit, XLA", "own, eager")
SOME = "fit, XLA, 5 at a time"
RESTORED, CLIPPED = "restored", "clipped"  # weights that a callback puts in, before the first batch or before each
BESIDE = ("keras", "namex", "h5py", "optree", "ml_dtypes", "absl", "rich", "pygments", "markdown_it", "mdurl")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[int, Any], list[dict[str, str]], list[Any]]:
    """The steps, the last weights of each scenario, and all lines, on TensorFlow."""
    folder = tmp_path_factory.mktemp("keras")
    printed, written = watched("tensorflow", folder, LOOPS, *EACH, SOME, RESTORED, CLIPPED)
    assert printed.startswith(alone("tensorflow", LOOPS, *COMPARED))
    return steps(written), [json.loads(line)[2] for line in printed.splitlines()], written


def check(place: int, seen: list[Any], weights: dict[str, str]) -> None:
    """The last line holds the last weights, and each step moved them."""
    last = seen[-1]
    everything = last["weights"] | last.get("buffers", {}) | last.get("generator", {})
    assert {f"{place}.{name}": code for name, code in weights.items()}.items() <= everything.items()
    moved = [line["weights"] for line in seen]
    assert all(a != b for a, b in pairwise(moved))
    assert all(line["changed weights"] == {} for line in seen)
    assert ("initial weights" in seen[0]) == (place > 0)  # the first one's are in line 0


@pytest.mark.parametrize("scenario", EACH)
def test_each_step_is_seen_once(results: Any, scenario: str) -> None:
    place = EACH.index(scenario)
    seen = [results[0][place * COUNT + step] for step in range(1, COUNT + 1)]
    check(place, seen, results[1][place])
    assert all(("gradients" in line) == (scenario != "fit, XLA") for line in seen)
    assert all(("batch" in line) == (scenario not in WITHOUT_BATCH) for line in seen)
    assert {"iteration", "learning_rate"} <= {name.split("/")[-1] for name in seen[0]["optimizer"]}


def test_batches_and_initial_weights(results: Any) -> None:
    fit, five = ([results[0][place * COUNT + step] for step in range(1, COUNT + 1)] for place in (0, 3))
    assert [line["batch"] for line in fit] == [line["batch"] for line in five]
    assert len({json.dumps(line["batch"]) for line in fit}) == COUNT
    first = results[0][0]["initial weights"]
    late = results[0][EACH.index("fit, made late") * COUNT + 1]
    for line in (five[0], late):
        assert list(line["initial weights"].values()) == list(first.values())  # of one seed
    assert set(first.values()) - set(fit[0]["weights"].values())


def test_batches_that_tf_data_hands_out(results: Any) -> None:
    """Those of an evaluation stand before the batch of the step that follows."""
    place = EACH.index("own, tf.data") * COUNT
    first, second, third, *others = [results[0][place + step]["batch"] for step in range(1, COUNT + 1)]
    assert all(set(line) == {"0.0", "0.1"} for line in (first, second, *others))
    assert set(third) == {f"{number}.{part}" for number in range(4) for part in (0, 1)}
    evaluated = [third[f"{number}.0"] for number in range(4)]
    assert evaluated[:2] == [first["0.0"], second["0.0"]] and evaluated[2] == evaluated[3]


def test_what_a_compiled_function_and_a_train_step_of_ones_own_are_given_is_the_batch(results: Any) -> None:
    own, step = (
        [[*results[0][EACH.index(name) * COUNT + step]["batch"].values()] for step in range(1, COUNT + 1)]
        for name in ("own, graph", "fit, own step")
    )
    assert own == step  # neither is shuffled
    assert len({code for line in own for code in line}) == 2 * COUNT


def test_counters_of_callbacks(results: Any) -> None:
    """As they are before each step; None where there is no best value yet."""
    begin = EACH.index("fit, own step") * COUNT
    lines = [line for line in results[2] if line["kind"] == "step" and begin < line["step"] <= begin + COUNT]
    counted = {"EarlyStopping.wait": "0", "EarlyStopping.best": "None", "EarlyStopping.patience": "3"}
    assert all(counted.items() <= line["scalars"].items() for line in lines) and len(lines) == COUNT
    assert all("scalars" not in line for line in results[2] if line["kind"] == "step" and line["step"] <= COUNT)


def test_xla_with_several_steps_per_execution(results: Any) -> None:
    """Only the end of each execution is seen, under the number of its last step."""
    before = len(EACH) * COUNT
    assert [step for step in results[0] if before < step <= before + COUNT] == [before + 5, before + 10]
    check(len(EACH), [results[0][before + 5], results[0][before + 10]], results[1][len(EACH)])
    assert any("only the last step of each execution" in note for note in notes(results[2]))
    assert any("that XLA compiles" in note for note in notes(results[2]))


def test_what_a_callback_restores_are_the_initial_weights(results: Any) -> None:
    """... of the run that it resumes."""
    place = len(EACH) + 1
    put_in = {f"{place}.{name}": code for name, code in results[1][place].items()}
    assert results[0][place * COUNT + 1]["initial weights"] == put_in


def test_what_a_callback_changes_between_two_steps_is_seen(results: Any) -> None:
    place = len(EACH) + 2
    changed = [results[0][place * COUNT + step]["changed weights"] for step in range(2, COUNT + 1)]
    assert [[*line.values()] for line in changed] == [[results[1][place][str(step)]] for step in range(1, COUNT)]


@pytest.mark.deep
def test_a_loop_in_xla_says_that_it_is_not_seen(tmp_path: Path) -> None:
    _, written = watched("tensorflow", tmp_path, LOOPS, "own, XLA")
    assert not steps(written)
    said = notes(written)
    assert any("that XLA compiles" in note for note in said)
    assert any("no step of an optimizer was seen" in note for note in said)


@pytest.mark.slow  # pytorch_loops.py has such steps
def test_steps_that_mixed_precision_skips(tmp_path: Path) -> None:
    printed, written = watched("tensorflow", tmp_path, LOOPS, "scaled", "scaled, XLA")
    seen, before = steps(written), 0
    for place, line in enumerate(printed.splitlines()):
        _, count, weights = json.loads(line)
        assert 0 < count < COUNT
        check(place, [seen[before + step] for step in range(1, count + 1)], weights)
        before += count
    assert max(seen) == before
    assert {"iteration", "dynamic_scale"} <= {name.split("/")[-1] for name in seen[1]["optimizer"]}


@pytest.mark.deep
def test_replicas_on_several_devices(tmp_path: Path) -> None:
    printed, written = watched("tensorflow", tmp_path, LOOPS, "distributed")
    seen = steps(written)
    assert list(seen) == list(range(COUNT + 1))
    check(0, [seen[step] for step in range(1, COUNT + 1)], json.loads(printed)[2])
    assert any("that is distributed, is seen after each batch" in note for note in notes(written))


@pytest.mark.slow  # the tests above have TensorFlow's backend
@pytest.mark.parametrize(("framework", "backend"), [("jax", "jax"), ("pytorch", "torch")])
def test_other_backends(tmp_path: Path, framework: str, backend: str) -> None:
    """Keras and what it needs, from TensorFlow's environment, beside that of another framework."""
    python = interpreter(framework)
    interpreter("tensorflow")
    (packages,) = (ROOT / ".venv" / "tensorflow" / "lib").glob("python*/site-packages")
    beside = tmp_path / "beside"
    beside.mkdir()
    for name in BESIDE:
        if (packages / name).exists():
            (beside / name).symlink_to(packages / name)
    for path in packages.glob("*.libs"):  # of wheels with libraries of their own
        (beside / path.name).symlink_to(path)
    env = {"KERAS_BACKEND": backend, "PYTHONPATH": str(beside), "KERAS_HOME": str(tmp_path)}
    printed, written = observed(python, tmp_path, LOOPS, "fit, as it comes", RESTORED, **env)
    seen = steps(written)
    assert list(seen) == list(range(2 * COUNT + 1))
    fit, restored = (json.loads(line)[2] for line in printed.splitlines())
    check(0, [seen[step] for step in range(1, COUNT + 1)], fit)
    assert seen[COUNT + 1]["initial weights"] == {f"1.{name}": code for name, code in restored.items()}
    assert all(("gradients" in line) == (backend == "torch") for step, line in seen.items() if step)
    assert all(("batch" in line) == (backend == "jax") for step, line in seen.items() if step)
    assert len({json.dumps(seen[step]["buffers"]) for step in range(1, COUNT + 1)}) == COUNT
    drawn = {code for line in seen.values() for name, code in line["generator"].items() if "seed_generator" in name}
    assert (len(drawn) >= COUNT) == (backend == "jax")  # PyTorch's dropout draws from a generator of its own
    assert any("batches are observed only where" in note for note in notes(written)) == (backend == "torch")
    ended(start([python, LOOPS, "fit, as it comes", RESTORED], tmp_path / "again", **env))
    (again,) = lines(tmp_path / "again").values()
    assert steps(again) == seen  # no hash is of an address in memory


def test_an_optimizer_that_ends_gives_its_number_to_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second and the third have the address in memory that the first had."""

    class Optimizer:
        pass

    monkeypatch.setattr(keras, "optimizers", [])
    assert [keras.observed_optimizer(Optimizer()).index for _ in range(3)] == [0, 1, 2]
