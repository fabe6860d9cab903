"""Steps of JAX that are written by hand, and all ways to call one that are seen, or said not to be."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.observed import SCRIPTS, interpreter, notes, observed, steps

SCRIPT = str(SCRIPTS / "jax_ways.py")
COUNT = 5
DEVICES = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
SEEN = ["ahead", "static", "lowered", "traced", "donated", "bound", "checkpointed", "history", "one_more", "split_up"]
SEEN += ["packed", "flat", "epochs", "mapped", "sharded", "flattened", "by_vjp", "eager_update"]
EQUINOX = ["equinox_updates", "equinox_tree", "equinox_pair", "equinox_ahead", "equinox_partition", "equinox_grads"]

Result = dict[str, tuple[list[Any], dict[str, str]]]


def trained(folder: Path, *scenarios: str) -> tuple[Result, list[Any]]:
    """For each scenario its steps and the hashes of its last weights, which are those without the observer; and all lines."""
    printed, written = observed(interpreter("jax"), folder, SCRIPT, *scenarios, **DEVICES)
    seen = steps(written)
    assert sorted(seen) == [*range(COUNT * len(scenarios) + 1)]
    assert not any("unseen" in line for line in written)
    last = [json.loads(line)[2] for line in printed.splitlines()]
    places = range(len(scenarios))
    of_each = [[seen[place * COUNT + step] for step in range(1, COUNT + 1)] for place in places]
    return dict(zip(scenarios, zip(of_each, last, strict=True), strict=True)), written


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Result:
    return trained(tmp_path_factory.mktemp("ways"), *SEEN)[0]


@pytest.mark.deep
@pytest.mark.parametrize("scenario", SEEN)
def test_each_step_and_the_last_weights_are_seen(results: Result, scenario: str) -> None:
    seen, last = results[scenario]
    assert {*last.values()} == {*seen[-1]["weights"].values()}
    assert len({json.dumps(line["weights"]) for line in seen}) == COUNT
    assert all(line["batch"] and line["changed weights"] == {} for line in seen)


@pytest.mark.deep
def test_what_goes_along_with_the_weights_is_no_batch(results: Result) -> None:
    def names(scenario: str, channel: str) -> set[str]:
        return {name.partition(".")[2] for name in results[scenario][0][1].get(channel, {})}

    assert names("static", "buffers") == {"velocity.b", "velocity.w"}
    assert names("split_up", "buffers") == {"state.count", "state.momentum.b", "state.momentum.w"}
    assert names("packed", "weights") == {"both.weights.b", "both.weights.w"} and names("packed", "batch") == {"x"}
    assert names("one_more", "weights") == {"state.b", "state.w"}
    assert set(results["static"][0][1]["batch"]) == set(results["lowered"][0][1]["batch"]) == {"x"}


@pytest.mark.deep
def test_a_gradient_that_is_not_compiled_is_a_step(tmp_path: Path) -> None:
    """Its last weights are seen by nobody: the program makes them of the last gradients."""
    result, _ = trained(tmp_path, "eager", "eager_anew")
    for seen, _ in result.values():
        assert all(
            {name.partition(".")[2] for name in line["gradients"]} == {"weights.b", "weights.w"} for line in seen
        )
        assert all("weights" in line for line in seen[:-1]) and "weights" not in seen[-1]


@pytest.mark.deep
@pytest.mark.parametrize("scenario", ["whole", "counted", "until", "loop_outside"])
def test_a_training_within_one_call_is_said_not_to_be_seen(scenario: str, tmp_path: Path) -> None:
    _, written = observed(interpreter("jax"), tmp_path, SCRIPT, scenario)
    assert not steps(written)
    assert any("within one compiled call shows no step" in note for note in notes(written))


@pytest.mark.deep
def test_equinox_by_hand(tmp_path: Path) -> None:
    python = interpreter("jax")
    if subprocess.run([python, "-c", "import equinox"], capture_output=True, check=False).returncode:
        pytest.skip("no equinox in .venv/jax")
    result: Result = {}
    for scenario in EQUINOX:  # once apply_updates reports, nothing else does
        result |= trained(tmp_path / scenario, scenario)[0]
    for scenario in EQUINOX[:-1]:
        seen, last = result[scenario]
        assert {*last.values()} == {*seen[-1]["weights"].values()}
        assert len({json.dumps(line["weights"]) for line in seen}) == COUNT
    assert all(set(line["batch"]) == {"x"} for name in EQUINOX[1:] for line in result[name][0])
    assert set(result["equinox_tree"][0][0]["weights"]) == {
        f"0.model.layers.{layer}.{name}" for layer in (0, 1) for name in ("weight", "bias")
    }
    assert all(name.startswith("0.velocity.") for name in result["equinox_pair"][0][0]["buffers"])
    assert all("gradients" in line for line in result["equinox_grads"][0])
