"""Steps of PyTorch's optimizers, seen without a change."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from repro.observe import entries
from support.observed import SCRIPTS, ended, forks, interpreter, lines, notes, start, steps, watched_and_alone

LOOPS = str(SCRIPTS / "pytorch_loops.py")
EAGER = [
    "adamw",
    "workers",
    "nested",
    "fused",
    "by lists",
    "backward",
    "scaled",
    "scaled, fused",
    "scheduled",
    "averaged",
    "main weights",
    "closure",
    "clipped",
]


def loops(folder: Path, *scenarios: str) -> tuple[dict[str, tuple[dict[int, Any], dict[str, str]]], list[Any]]:
    """For each scenario its steps and the hashes of its last weights; and all lines."""
    printed, written = watched_and_alone("pytorch", folder, LOOPS, *scenarios)
    all_steps = steps(written)
    result, before = {}, 0
    for line in printed.splitlines():
        scenario, count, weights = json.loads(line)
        result[scenario] = {step: all_steps[step] for step in range(before + 1, before + count + 1)}, weights
        before += count
    assert max(all_steps) == before  # nothing was counted twice, and nothing more than there was
    return result, written


def named(hashes: dict[str, str]) -> dict[str, str]:
    """Of the newest optimizer, whose place is left out."""
    newest = max(int(name.split(".")[0]) for name in hashes)
    return {name.split(".", 1)[1]: code for name, code in hashes.items() if name.startswith(f"{newest}.")}


@pytest.fixture(scope="module")
def eager(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], list[Any]]:
    return loops(tmp_path_factory.mktemp("eager"), *EAGER)


def check(seen: dict[int, Any], weights: dict[str, str]) -> None:
    """The last line holds the last weights and buffers, and each step moved the weights."""
    last = seen[max(seen)]
    assert named(last["weights"] | last.get("buffers", {})) == weights
    moved = [line["weights"] for line in seen.values()]
    assert all(a != b for a, b in pairwise(moved))
    assert all(line["changed weights"] == {} for line in seen.values())


@pytest.mark.parametrize(
    "scenario", ["adamw", "workers", "nested", "fused", "scaled", "scaled, fused", "scheduled", "averaged", "closure"]
)
def test_each_step_is_seen_once(eager: Any, scenario: str) -> None:
    check(*eager[0][scenario])


def test_what_changes_weights_between_two_steps_is_seen(eager: Any) -> None:
    seen, clipped = eager[0]["clipped"]
    changed = [named(line["changed weights"]) for line in list(seen.values())[1:]]
    assert changed == [{"0.weight": clipped[str(number)]} for number in range(1, len(seen))]
    assert seen[min(seen)]["changed weights"] == {}  # those are initial weights


def test_the_channels_of_a_step(eager: Any) -> None:
    seen, weights = eager[0]["adamw"]
    channels = {channel for line in seen.values() for channel in line}
    assert channels == {"batch", "generator", "gradients", "optimizer", "weights", "buffers", "changed weights"}
    assert all(set(line["batch"]) == {"0.0", "0.1"} for line in seen.values())
    assert len({json.dumps(line["batch"]) for line in seen.values()}) == len(seen)
    assert len({line["generator"]["torch"] for line in seen.values()}) == len(seen)  # dropout draws
    assert "python" not in seen[1]["generator"]  # nobody seeded it, or drew
    assert {"0.0.weight.exp_avg", "0.0.weight.step", "0.group 0.lr"} <= set(seen[1]["optimizer"])
    trained = {f"0.{name}" for name in weights if "running" not in name and "num_batches" not in name}
    assert set(seen[1]["gradients"]) == set(seen[1]["weights"]) == trained
    (initial,) = [line["hashes"] for line in eager[1] if line.get("step") == 0]
    assert set(initial["initial weights"]) == trained
    assert initial["initial weights"] != seen[1]["weights"] and initial["optimizer"] == {}


def test_the_last_line_says_what_observing_took(eager: Any) -> None:
    assert [line["kind"] for line in eager[1]].index("end") == len(eager[1]) - 1
    assert eager[1][-1]["seconds"] > 0


def scalars(eager: Any, scenario: str) -> list[dict[str, str]]:
    """The numbers of each step, without the place of the optimizer among all."""
    lines = {line["step"]: line.get("scalars", {}) for line in eager[1] if line["kind"] == "step"}
    seen = [lines[step] for step in eager[0][scenario][0]]
    return [{name.partition(".group ")[2] or name: text for name, text in line.items()} for line in seen]


def test_a_record_holds_the_numbers_that_a_step_depends_on(eager: Any) -> None:
    """A layer that is checkpointed has a backward pass of its own within one of the two."""
    seen = scalars(eager, "scheduled")
    assert [line["0.lr"] for line in seen] == [repr(0.1 * 0.5**step) for step in range(6)]
    assert [line["ExponentialLR.last_epoch"] for line in seen] == [str(step) for step in range(6)]
    assert {line["backward passes"] for line in seen} == {"2"}
    assert {line["0.momentum"] for line in seen} == {"0.9"}


@pytest.mark.parametrize("scenario", ["scaled", "scaled, fused"])
def test_the_scale_of_the_loss_is_seen_and_skipped_steps_leave_their_passes(eager: Any, scenario: str) -> None:
    """Passes 1 and 4 of six are infinite: each is followed by a smaller scale."""
    seen = scalars(eager, scenario)
    assert [(line["backward passes"], line["scaler.scale"]) for line in seen] == [
        ("2", "8.0"),
        ("1", "8.0"),
        ("2", "4.0"),
        ("1", "4.0"),
    ]


def test_the_passes_of_a_closure_belong_to_its_step(eager: Any) -> None:
    results = {(line["backward passes"], line["backward passes of the closure"]) for line in scalars(eager, "closure")}
    assert results == {("2", "2")}


def test_copies_of_the_weights_are_seen_as_they_are_before_a_step(eager: Any) -> None:
    seen, _ = eager[0]["averaged"]
    first, second, *_ = seen.values()
    weights = named(first["weights"])
    shadow = {f"Average.shadow.{name}" for name in weights}
    assert set(first["copies"]) >= shadow | {f"AveragedModel.{name}" for name in weights} | {"AveragedModel.n_averaged"}
    assert not any("before" in name or "list" in name for name in first["copies"])
    for name in weights:
        assert first["copies"][f"Average.shadow.{name}"] == named(first["initial weights"])[name]
        assert second["copies"][f"AveragedModel.{name}"] == weights[name]  # of one step, the average is its weights
    assert len({line["copies"]["Average.shadow.0.weight"] for line in seen.values()}) == len(seen)
    assert not any(line.get("copies") for line in eager[0]["adamw"][0].values())


def test_copies_in_another_precision_are_seen(eager: Any) -> None:
    """... of weights that are no module's."""
    copies = [line["copies"] for line in eager[0]["main weights"][0].values()]
    assert all(set(line) >= {"Average.shadow.0.weight", "Average.shadow.0.bias"} for line in copies)
    assert len({line["Average.shadow.0.weight"] for line in copies}) == len(copies)


def test_a_batch_that_is_asked_for_ahead_belongs_to_an_earlier_step(tmp_path: Path) -> None:
    """The note says so, and does not say that no batch is observed."""
    result, written = loops(tmp_path, "ahead")
    seen, weights = result["ahead"]
    check(seen, weights)
    assert [len(line.get("batch", {})) for line in seen.values()] == [4, 2, 2, 2, 2, 0]
    assert [note for note in notes(written) if "DataLoader" in note] == [
        "before some steps no DataLoader handed out a batch: one asked for ahead is recorded with the step before"
    ]


def test_a_later_optimizer_has_its_own_initial_weights_and_names(eager: Any) -> None:
    seen, _ = eager[0]["nested"]
    first, *others = seen.values()
    assert set(first["initial weights"]) == set(first["weights"]) == {f"2.{name}" for name in NAMES}
    assert not any("initial weights" in line for line in others)


NAMES = ("0.weight", "0.bias", "1.weight", "1.bias", "3.weight", "3.bias")


def test_parameters_of_several_modules(eager: Any) -> None:
    """Two layers' parameters in one list; the network of which they are part was never asked for its own."""
    seen, _ = eager[0]["by lists"]
    assert len(seen[max(seen)]["weights"]) == 4
    assert any("are called by their group and place" in note for note in notes(eager[1]))


def test_optimizers_within_the_backward_pass(eager: Any) -> None:
    seen, weights = eager[0]["backward"]
    places = range(EAGER.index("backward"), EAGER.index("backward") + len(NAMES))
    own = [(name.split(".", 1), code) for line in seen.values() for name, code in line["weights"].items()]
    last = {name: code for (place, name), code in own if int(place) in places}
    assert last == {name: weights[name] for name in NAMES}
    assert not any("asked for ahead" in note for note in notes(eager[1]))  # they all train on one batch


@pytest.mark.parametrize(
    "scenarios",
    [
        pytest.param(("compiled", "compiled optimizer"), marks=pytest.mark.deep),
        pytest.param(("inductor", "inductor, optimizer"), marks=pytest.mark.slow),
    ],
)
def test_compiled(tmp_path: Path, scenarios: tuple[str, ...]) -> None:
    result, _ = loops(tmp_path, *scenarios)
    for scenario in scenarios:
        check(*result[scenario])


def test_batches_that_no_loader_hands_out_are_what_a_module_is_called_with(tmp_path: Path) -> None:
    """Not what it is called with without gradients; and its compiler is given the same graph as without the observer."""
    printed, written = watched_and_alone("pytorch", tmp_path, str(SCRIPTS / "pytorch_calls.py"))
    kinds = [json.loads(line) for line in printed.splitlines()]
    assert [batch for kind, batch, *_ in kinds if kind == "batch"] == [
        line["batch"] for step, line in steps(written).items() if step
    ]
    assert any(kind == "graph" for kind, *_ in kinds)
    assert not any("batches" in note for note in notes(written))


def test_updates_by_hand_are_seen_from_one_backward_pass_to_the_next(tmp_path: Path) -> None:
    """The last update of weights that are made anew is in no later graph."""
    printed, written = watched_and_alone("pytorch", tmp_path, str(SCRIPTS / "pytorch_by_hand.py"))
    (_, count, in_place), (_, _, anew) = map(json.loads, printed.splitlines())
    seen = steps(written)
    assert [*seen] == [*range(2 * count + 1)]
    names = {f"0.{name}": code for name, code in in_place.items()}
    assert seen[count]["weights"] == names
    assert set(seen[0]["initial weights"]) == set(seen[1]["gradients"]) == set(names)
    assert seen[2 * count - 1]["weights"].keys() == {f"0.{name}" for name in anew}
    assert len({json.dumps(line["gradients"]) for step, line in seen.items() if step}) == 2 * count


@pytest.mark.xdist_group("ports")
def test_ranks_have_their_own_lines(tmp_path: Path) -> None:
    module = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    ended(start([interpreter("pytorch"), *module, str(SCRIPTS / "pytorch_ranks.py")], tmp_path))
    results = {name.split(".")[0]: written for name, written in lines(tmp_path).items()}
    first, second = steps(results["rank-0"]), steps(results["rank-1"])
    assert list(first) == list(second) == [0, 1, 2, 3]
    assert first[3]["weights"] == second[3]["weights"]
    assert set(first[3]["weights"]) == {"0.weight", "0.bias"}  # as without ranks
    assert first[1]["generator"] != second[1]["generator"]
    assert results["rank-1"][0]["rank"] == 1
    launcher = [written for name, written in results.items() if not name.startswith("rank")]
    assert all(not steps(written) and written[-1]["kind"] != "end" for written in launcher)


def test_a_forked_child_has_its_own_file(tmp_path: Path) -> None:
    own = forks("pytorch", True)
    own.start(tmp_path, (str(SCRIPTS / "pytorch_fork.py"),), {})
    own.printed()
    results = [steps(written) for written in lines(tmp_path).values()]
    assert sorted(map(list, results)) == [[0, 1], [0, 1, 2, 3]]
    assert sorted(written[0]["forked"] for written in lines(tmp_path).values()) == [False, True]
    generators = [{*line["generator"]} for seen in results for line in seen.values()]
    assert generators == [{"torch"}] * 6  # Python seeds `random` anew in the child, and nobody draws from it


def test_what_is_hooked_later_is_wrapped_as_what_was_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keras may come after torch._dynamo, which must not trace the hooks of either."""
    monkeypatch.setattr(entries, "entries", {"before": "a", "after": "b"})
    monkeypatch.setattr(entries, "wraps", [])
    monkeypatch.setattr(entries, "after_wrapping", [])
    entries.wrap_all(lambda entry: f"({entry})")
    entries.wrap_all(lambda entry: f"[{entry}]")
    entries.add("later", "c")
    assert entries.entries == {"before": "[(a)]", "after": "[(b)]", "later": "[(c)]"}
