"""Recurrent layers, attention and optimizers, under portable numerics of any PyTorch program."""

import json
from typing import Any

import pytest

from support.programs import program

pytestmark = pytest.mark.deep


@pytest.fixture(scope="module")
def layers() -> dict[str, Any]:
    return json.loads(program("pytorch", "mode_layers.py"))


def test_a_recurrent_step_has_the_bits_of_its_separate_operations(layers: dict[str, Any]) -> None:
    assert layers["recurrent"] == {"differ": [], "far": [], "threads": []}


def test_a_cell_is_a_layer_of_one_step(layers: dict[str, Any]) -> None:
    assert layers["cells"] == []


def test_fused_and_foreach_steps_of_optimizers_have_the_bits_of_separate_operations(layers: dict[str, Any]) -> None:
    assert layers["optimizers"] == {"differ": [], "far": []}


def test_attention_experts_factors_and_encoders_are_close_to_float64s(layers: dict[str, Any]) -> None:
    assert layers["far"] == []
