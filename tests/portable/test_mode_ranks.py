"""DDP, FSDP and collectives under the mode: the same bits on all ranks, with any number of threads, twice."""

import json
from typing import Any

import pytest

from support.programs import program

pytestmark = [pytest.mark.deep, pytest.mark.xdist_group("ports")]


@pytest.fixture(scope="module")
def trained() -> dict[str, list[list[dict[str, Any]]]]:
    return json.loads(program("pytorch", "mode_ranks.py", "2", "3"))


def test_all_ranks_hold_the_same(trained: dict[str, Any]) -> None:
    for ranks in trained.values():  # what collectives add up to, the program itself checks
        assert all(rank == ranks[0] for rank in ranks)
        assert len(ranks[0][0]["collectives"]) == 8


def test_training_has_the_same_bits_with_one_thread_and_two(trained: dict[str, Any]) -> None:
    for ranks in trained.values():
        assert ranks[0][0] == ranks[0][1]


def test_hooks_and_accumulation_are_done(trained: dict[str, Any]) -> None:
    for ranks in trained.values():
        names = ("DDP", "DDP, compressed", "DDP, accumulated", "DDP, clipped")
        assert len({ranks[0][0][name] for name in names}) == len(names)


def test_ranks_train_alike_by_ddp_and_by_fully_shard(trained: dict[str, Any]) -> None:
    for ranks in trained.values():
        for rank in ranks:
            assert rank[0]["DDP"] == rank[0]["fully_shard"]
            assert rank[0]["DDP, clipped"] == rank[0]["fully_shard, clipped"]


def test_two_ranks_train_alike_by_both_forms_of_fsdp(trained: dict[str, Any]) -> None:
    for rank in trained["2"]:
        assert rank[0]["FSDP"] == rank[0]["fully_shard"]
