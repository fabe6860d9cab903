"""One training that is split among ranks in several ways: its tensors are hashed as wholes."""

import json
from pathlib import Path
from typing import Any

import pytest

from support.observed import SCRIPTS, alone, forks, lines, notes, steps

PROGRAM = str(SCRIPTS / "pytorch_layouts.py")
WHOLE = ("initial weights", "changed weights", "gradients", "optimizer", "weights")

Seen = dict[str, list[list[dict[str, Any]]]]


def observed(folder: Path, *layouts: str) -> Seen:
    """The lines of each rank of each layout, whose last weights are the same without the observer."""
    own = forks("pytorch", True)
    own.start(folder, (PROGRAM, *layouts), {})
    printed = own.printed().splitlines()
    assert sorted(printed) == sorted(alone("pytorch", PROGRAM, *layouts).splitlines())
    seen: Seen = {}
    for _, written in sorted(lines(folder).items()):
        if steps(written):  # and not the process that starts them
            seen.setdefault(written[0]["argv"][0], []).append(written)
    for layout, _, weights in map(json.loads, printed):
        if layout not in ("deaf", "others"):
            last = steps(seen[layout][0])[3]["weights"]
            assert last == {f"0.{name}": code for name, code in weights.items()}
    return seen


def whole(written: list[dict[str, Any]]) -> dict[int, Any]:
    return {step: {channel: hashes.get(channel) for channel in WHOLE} for step, hashes in steps(written).items()}


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    layouts = ("single:1", "ddp:2", "fsdp1:2", "fsdp2:2", "tp:2", "deaf:2", "others:2")
    return observed(tmp_path_factory.mktemp("layouts"), *layouts)


@pytest.mark.parametrize("layout", ["ddp", "fsdp1", "fsdp2", "tp"])
def test_each_rank_has_the_hashes_of_whole_tensors(seen: Seen, layout: str) -> None:
    """TP's shards are uneven; of FSDP 1 a rank has no piece of some parameters, nor their gradient or momentum."""
    assert len(seen[layout]) == 2
    single = whole(seen["single"][0])
    assert sorted(single) == [0, 1, 2, 3] and single[3]["gradients"].keys() == single[3]["weights"].keys()
    for rank in seen[layout]:
        assert whole(rank) == single
        assert not any("unseen" in line for line in rank)


def test_groups_of_ranks_that_share_tensors_are_named(seen: Seen) -> None:
    for layout, groups in (("single", None), ("ddp", None), ("fsdp1", ["0,1"]), ("fsdp2", ["0,1"]), ("tp", ["0,1"])):
        assert all(line.get("shared") == groups for rank in seen[layout] for line in rank if line["kind"] == "step")


def test_a_rank_that_is_not_observed_stops_no_other(seen: Seen) -> None:
    """The other one hashes its parts, and says so once."""
    (rank,) = seen["deaf"]
    assert [line["unseen"] for line in rank if line["kind"] == "note"] == [1]
    assert "not all of ranks 0, 1 came to gather" in notes(rank)[0]
    assert steps(rank)[3]["weights"] != steps(seen["fsdp2"][0])[3]["weights"]
    assert steps(rank)[3]["weights"].keys() == steps(seen["fsdp2"][0])[3]["weights"].keys()


def test_ranks_that_do_not_hold_the_same_gather_again_when_they_do(seen: Seen) -> None:
    both = seen["others"]
    for rank in both:
        assert [line["unseen"] for line in rank if line["kind"] == "note"] == [2]
        assert "do not hold the same tensors" in notes(rank)[0]
    first, second = (steps(rank) for rank in both)
    assert first[2]["gradients"] != second[2]["gradients"]
    assert first[3]["gradients"] == second[3]["gradients"]


@pytest.mark.deep
def test_fsdp_and_tensor_parallel_layers_on_a_mesh_of_two_axes(tmp_path: Path) -> None:
    seen = observed(tmp_path, "single:1", "2d:4", "fsdp2:3", "tp:4")
    assert {layout: len(ranks) for layout, ranks in seen.items()} == {"single": 1, "2d": 4, "fsdp2": 3, "tp": 4}
    for layout in ("2d", "tp"):
        assert all(whole(rank) == whole(seen["single"][0]) for rank in seen[layout])
    assert whole(seen["fsdp2"][0]) == whole(seen["fsdp2"][1]) == whole(seen["fsdp2"][2])  # a third of a batch rounds
