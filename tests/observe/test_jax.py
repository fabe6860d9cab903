"""Steps of Optax, Flax and Equinox, seen without a change."""

import hashlib
import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

from repro.observe import hashing, jax, recorder, traces
from support.observed import SCRIPTS, alone, interpreter, notes, steps, watched, watched_and_alone

LOOPS = str(SCRIPTS / "jax_loops.py")
COUNT = 6
SCENARIOS = ["eager", "jit", "scan", "linen", "nnx", "recurrent"]
OTHERS = [
    "averages, eager",
    "averages",
    "linen averages, eager",
    "linen averages",
    "key",
    "state",
    "clipped",
]


def loops(folder: Path, *scenarios: str, **env: str) -> tuple[list[tuple[list[Any], dict[str, str]]], list[Any]]:
    """For each scenario its steps and the hashes of its last weights; and all lines."""
    printed, written = watched("jax", folder, LOOPS, *scenarios, **env)
    seen = steps(written)
    assert list(seen) == list(range(COUNT * len(scenarios) + 1))  # in order, none twice
    weights = [json.loads(line)[2] for line in printed.splitlines()]
    return [
        ([seen[place * COUNT + n] for n in range(1, COUNT + 1)], last) for place, last in enumerate(weights)
    ], written


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[tuple[list[Any], dict[str, str]]], list[Any]]:
    """Those whose last weights are compared with those of runs without the observer."""
    content = loops(tmp_path_factory.mktemp("jax"), *SCENARIOS)
    printed = alone("jax", LOOPS, *SCENARIOS)
    assert [json.loads(line)[2] for line in printed.splitlines()] == [weights for _, weights in content[0]]
    return content


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[list[Any], dict[str, str]]]:
    return dict(zip(OTHERS, loops(tmp_path_factory.mktemp("others"), *OTHERS)[0], strict=True))


def check(place: int, seen: list[Any], weights: dict[str, str]) -> None:
    assert seen[-1]["weights"] == {f"{place}.{name}": code for name, code in weights.items()}
    moved = [line["weights"] for line in seen]
    assert all(a != b for a, b in pairwise(moved))
    assert all(line["changed weights"] == {} for line in seen)
    assert all(any(".state." in name for name in line["optimizer"]) for line in seen)
    assert ("initial weights" in seen[0]) == (place > 0)  # the first one's are in line 0
    assert not any("initial weights" in line for line in seen[1:])


def sha(batch: Any) -> str:
    return hashlib.sha256(b"float32 8,4\n" + batch.tobytes()).hexdigest()


def batches() -> Any:
    """As the script makes them."""
    return numpy.random.RandomState(0).randn(COUNT, 8, 4).astype("float32")


def check_compiled(seen: list[Any]) -> None:
    """A compiled step reports its batch, and nothing that XLA would not write to memory by itself."""
    assert [[*line["batch"].values()] for line in seen] == [[sha(batch)] for batch in batches()]
    assert not any("gradients" in line or any(".update." in name for name in line["optimizer"]) for line in seen)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_each_step_is_seen_once(results: Any, scenario: str) -> None:
    """Asked for its gradients as well, XLA would compute other weights of the recurrent one."""
    place = SCENARIOS.index(scenario)
    seen, weights = results[0][place]
    check(place, seen, weights)
    if scenario == "eager":
        assert all(set(line["gradients"]) == set(line["weights"]) for line in seen)
        assert all(any(".update." in name for name in line["optimizer"]) for line in seen)
    elif scenario != "recurrent":
        check_compiled(seen)


def test_the_generators_of_a_compiled_step_are_those_before_its_first(results: Any) -> None:
    eager, compiled = results[0][0][0], results[0][1][0]
    assert "numpy" in eager[0]["generator"]  # RandomState(0) is another one; the script seeds the global one
    assert compiled[0]["generator"] == eager[0]["generator"]
    assert all("generator" not in line for line in compiled[1:])
    said = notes(results[1])
    assert "JAX: batches are observed only where they are arguments of a compiled step" in said  # of the eager one
    assert any("of a compiled step, the gradients are not observed" in note for note in said)


@pytest.mark.deep
def test_keys_are_generators_and_counts_no_batch(others: dict[str, Any]) -> None:
    seen, _ = others["key"]
    assert all(set(line["generator"]) - {"numpy"} == {"key"} for line in seen)
    assert len({line["generator"]["key"] for line in seen}) == COUNT
    assert all(set(line["batch"]) == {"x"} for line in seen)


@pytest.mark.deep
def test_state_that_is_no_weight(others: dict[str, Any]) -> None:
    """BatchNorm's averages and what Dropout draws from: before each compiled step, and of NNX after each eager one."""
    (eager, after), (compiled, before), (linen_eager, _), (linen, _) = (others[name] for name in OTHERS[:4])
    assert eager[-1]["buffers"] == {f"0.{name}": code for name, code in after.items()}
    assert compiled[-1]["buffers"] == {f"net.{name}": code for name, code in before.items()}
    for seen, names in (
        (eager, {"0.norm.mean", "0.norm.var"}),
        (compiled, {"net.norm.mean", "net.norm.var"}),
        (linen_eager, {"1.batch_stats.mean", "1.batch_stats.var"}),
        (linen, {"state.batch_stats['mean']", "state.batch_stats['var']"}),
    ):
        assert all(set(line["buffers"]) == names for line in seen)
        assert len({json.dumps(line["buffers"]) for line in seen}) == COUNT
    for seen, name in ((eager, "0.dropout.rngs"), (compiled, "net.dropout.rngs")):
        assert all({f"{name}.key", f"{name}.count"} <= set(line["generator"]) for line in seen)
        assert len({line["generator"][f"{name}.count"] for line in seen}) == COUNT
    assert set(compiled[0]["batch"]) == {"x"}


@pytest.mark.deep
def test_state_that_is_an_argument_of_its_own_and_comes_back(others: dict[str, Any]) -> None:
    """As Haiku's. A prediction like the batch does not make state of it; a count of its own is neither."""
    seen, _ = others["state"]
    assert all(set(line["batch"]) == {"x"} for line in seen)
    assert all(set(line["buffers"]) == {"state['norm']['mean']", "state['norm']['counter']"} for line in seen)
    assert all({"keys", "rng"} == {*line["generator"]} - {"numpy"} for line in seen)
    assert len({json.dumps(line["buffers"]) for line in seen}) == COUNT


def test_devices_that_share_a_step_count_it_once(tmp_path: Path) -> None:
    flags = "--xla_force_host_platform_device_count=2"
    ((seen, weights),), written = loops(tmp_path, "sharded", XLA_FLAGS=flags)
    check(0, seen, weights)
    assert not any("batch" in line for line in seen)
    assert any("the first one of each process is observed" in note for note in notes(written))


def test_arrays_that_devices_divide_are_hashed_as_wholes(tmp_path: Path) -> None:
    """One step of them all, which XLA divides: the line is that of a single device."""
    ways = ["rows on 1 device", "rows on 2 devices", "rows on 4 devices", "columns on 4 devices"]
    content, _ = loops(tmp_path, *ways, XLA_FLAGS="--xla_force_host_platform_device_count=4")
    (single, last), *others = content
    check(0, single, last)
    for seen, weights in others:
        assert weights == last
        for ours, theirs in zip(single, seen, strict=True):
            assert all(ours[channel] == theirs[channel] for channel in ("batch", "optimizer", "weights"))


def test_what_processes_hold_in_parts_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part: Any = SimpleNamespace(shape=(2,), dtype="float32", is_fully_addressable=False, is_fully_replicated=False)
    observer = recorder.Recorder(str(tmp_path), 1)
    monkeypatch.setattr(recorder, "active", observer)
    assert hashing.hash_named([("a", part), ("b", part), ("c", 1.5)]).keys() == {"c"}
    assert observer.notes == [hashing.SPREAD]


def test_equinox(tmp_path: Path) -> None:
    python = interpreter("jax")
    done = subprocess.run([python, "-c", "import equinox"], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("no equinox in .venv/jax")
    ((seen, weights),), _ = loops(tmp_path, "equinox")
    check(0, seen, weights)
    check_compiled(seen)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("dynamic_nodonate['rest'][1]", "arguments.1"),
        ("dynamic_donate['first'][0]", "first argument.0"),
        ("dynamic['rest'][1]", "dynamic['rest'][1]"),
        ("batch['image']", "batch['image']"),
    ],
)
def test_an_array_that_equinox_hands_on_has_a_name_that_people_read(name: str, shown: str) -> None:
    assert jax._path(name, []) == shown


@pytest.mark.deep
def test_updates_by_hand_are_calls_of_compiled_functions(tmp_path: Path) -> None:
    """Not those that normalize data, or predict: their results are no argument of their next calls."""
    printed, written = watched_and_alone("jax", tmp_path, str(SCRIPTS / "jax_by_hand.py"))
    (_, count, update), _, (_, _, method), (_, _, state), (_, _, nnx) = map(json.loads, printed.splitlines()[:5])
    seen = steps(written)
    assert sorted(seen) == [*range(5 * count + 1)]
    assert seen[0]["initial weights"] != seen[1]["weights"]
    assert seen[count]["weights"] == {f"0.weights.{name}": code for name, code in update.items()}
    assert set(seen[1]["batch"]) == {"x", "y"}
    texts = [line["scalars"]["0.rate"] for line in written if line.get("step") in range(1, count + 1)]
    assert texts == [repr(0.1 / (step + 1)) for step in range(count)]

    gradients = [seen[step] for step in range(count + 1, 2 * count + 1)]
    assert all(set(line["gradients"]) == {"1.weights.w", "1.weights.b"} for line in gradients)
    assert gradients[0]["initial weights"] != gradients[0]["weights"] != gradients[1]["weights"]
    assert "weights" not in gradients[-1]  # nothing shows what was made of the last gradients

    assert seen[3 * count]["weights"] == {f"2.weights.{name}": code for name, code in method.items()}
    assert set(seen[3 * count]["generator"]) == {"2.key"}

    results = [seen[step] for step in range(3 * count + 1, 4 * count + 1)]
    assert results[-1]["weights"] == {f"3.weights.{name}": code for name, code in state.items()}
    beside = {"3.momentum.b", "3.momentum.w", "3.state.norm.mean", "3.state.norm.counter"}
    assert all(set(line["buffers"]) == beside for line in results)  # before the step, so the first ones are zeros
    assert all(set(line["batch"]) == {"x"} and set(line["generator"]) == {"key"} for line in results)
    assert len({json.dumps(line["buffers"]) for line in results}) == count
    assert set(results[0]["initial weights"]) == {"3.weights.b", "3.weights.w"}

    assert not any("unseen" in line for line in written)
    results = [seen[step] for step in range(4 * count + 1, 5 * count + 1)]
    assert results[-1]["weights"]["4.network.dense.kernel"] == nnx["kernel"]
    assert all(set(line["buffers"]) == {"4.network.norm.mean", "4.network.norm.var"} for line in results)
    assert all(
        set(line["generator"]) == {f"4.network.dropout.rngs.{name}" for name in ("key", "count")} for line in results
    )
    assert all(set(line["batch"]) == {"x"} for line in results)
    assert len({json.dumps(line) for line in results}) == count
    assert set(results[0]["initial weights"]) == set(results[0]["weights"])
    assert all(line["changed weights"] == {} for step, line in seen.items() if step)


@pytest.mark.deep
def test_what_changes_weights_between_two_steps_is_seen(others: dict[str, Any], tmp_path: Path) -> None:
    """Between calls of a step of Optax, of one that is written by hand, and of one that NNX compiled."""
    script, names = str(SCRIPTS / "jax_by_hand.py"), ("halved", "halved nnx")
    by_hand = steps(watched("jax", tmp_path / "hand", script, *names)[1])
    seen = [line for _, line in sorted(by_hand.items())][1:]
    half = len(seen) // 2
    for result, name in (
        (others["clipped"][0], "4.clipped.kernel"),
        (seen[:half], "0.weights.w"),
        (seen[half:], "1.network.kernel"),
    ):
        changed = [line["changed weights"] for line in result]
        assert [list(names) for names in changed] == [[], *[[name]] * (len(result) - 1)]


def test_a_function_that_is_pickled_is_the_program_s_own() -> None:
    make, given = traces.Traced(json.dumps).__reduce__()
    assert make(*given) is json.dumps


def test_a_function_of_the_program_is_freed() -> None:
    """JAX keeps what it compiled for a function as long as that lives."""

    function = lambda: None  # noqa: E731
    first, again = (traces.compiled(lambda traced: SimpleNamespace(own=traced), function) for _ in range(2))
    assert first.own is again.own and first.own.__wrapped__ is function
    del function
    assert first.own.__wrapped__ is not None and traces.known  # what was compiled holds it
    del first, again
    assert not traces.known


def test_a_function_that_ends_with_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """The names of a module are gone then."""
    failed: list[Any] = []
    function = lambda: None  # noqa: E731
    held = traces.Traced(function)
    monkeypatch.setattr(sys, "unraisablehook", failed.append)
    monkeypatch.setattr(traces, "known", None)
    del function
    assert held.__wrapped__ is None and not failed


@pytest.mark.parametrize(
    ("dtype", "shape", "channel"),
    [
        ("uint32", (2,), "generator"),
        ("uint32", (4,), "generator"),
        ("uint32", (8, 2), "batch"),
        ("int32", (2,), "batch"),
        ("key<fry>", (), "generator"),
        ("uint32", (), None),
    ],
)
def test_a_key_of_old_is_a_generator(dtype: str, shape: tuple[int, ...], channel: str | None) -> None:
    assert jax._channel("rng", SimpleNamespace(dtype=dtype, shape=shape), None) == channel
