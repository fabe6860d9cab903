"""Operations that choose, order and add, under portable numerics of any PyTorch program."""

import json
from typing import Any

import pytest

from repro.verify.command_questions import SSE4
from support.programs import program

pytestmark = pytest.mark.deep


@pytest.fixture(scope="module")
def indexing() -> dict[str, Any]:
    return json.loads(program("pytorch", "mode_indexing.py"))


def test_each_has_a_portable_form(indexing: dict[str, Any]) -> None:
    assert indexing["failed"] == {} and len(indexing["fingerprints"]) > 220


def test_threads_kernels_and_layouts_change_no_bit(indexing: dict[str, Any]) -> None:
    assert indexing["differ"] == []


def test_results_are_close_to_float64s(indexing: dict[str, Any]) -> None:
    assert indexing["far"] == []


@pytest.mark.slow  # the same again
def test_instruction_sets_change_no_bit(indexing: dict[str, Any]) -> None:
    old = json.loads(program("pytorch", "mode_indexing.py", **dict(SSE4)))
    assert old["fingerprints"] == indexing["fingerprints"]
