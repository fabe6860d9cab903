"""Random numbers under portable numerics of any PyTorch program."""

import json
from typing import Any

import pytest

from support.programs import program

pytestmark = pytest.mark.deep

UNUSUAL = 3.3
"""Beyond it is one of a thousand samples; they follow from a seed."""


@pytest.fixture(scope="module")
def numbers() -> dict[str, Any]:
    return json.loads(program("pytorch", "mode_random.py"))


def test_threads_and_kernels_change_no_number(numbers: dict[str, Any]) -> None:
    assert numbers["differ"] == [] and numbers["cases"] > 40


def test_numbers_are_those_of_the_reference(numbers: dict[str, Any]) -> None:
    assert numbers["reference"] == []


def test_samples_have_their_distributions(numbers: dict[str, Any]) -> None:
    assert {name: far for name, far in numbers["statistics"].items() if far > UNUSUAL} == {}
    assert len(numbers["statistics"]) == 22


def test_numbers_follow_from_the_states_of_generators(numbers: dict[str, Any]) -> None:
    assert numbers["repeats"].pop("one draw after another") is False
    assert set(numbers["repeats"].values()) == {True}, numbers["repeats"]


def test_ends_and_types(numbers: dict[str, Any]) -> None:
    assert set(numbers["edges"].values()) == {True}, numbers["edges"]


def test_what_has_no_numbers_is_an_error_as_in_pytorch(numbers: dict[str, Any]) -> None:
    assert len(numbers["refused"]) == 8


def test_dropout_is_the_same_in_each_form_and_in_checkpointing(numbers: dict[str, Any]) -> None:
    assert numbers["dropouts"] == {"native": True, "checkpointed": True}


def test_cuda_generators_have_counterparts_on_the_cpu(numbers: dict[str, Any]) -> None:
    assert set(numbers["counterparts"].values()) == {True}, numbers["counterparts"]


def test_workers_draw_by_their_seeds(numbers: dict[str, Any]) -> None:
    assert numbers["workers"] is True


@pytest.mark.slow
def test_workers_by_fork_and_by_spawn_draw_the_same() -> None:
    fork, spawn = json.loads(program("pytorch", "mode_random.py", "spawn"))
    assert fork == spawn and len(fork) == 8


@pytest.mark.gpu
def test_a_gpu_draws_the_numbers_of_a_cpu() -> None:
    assert json.loads(program("pytorch", "mode_random.py", "cuda")) == {"differ": [], "states": True, "seeds": True}
