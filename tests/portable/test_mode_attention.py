"""Attention under portable numerics: a query depends on the keys that it sees alone."""

import json
from typing import Any

import pytest

from support.programs import program

pytestmark = pytest.mark.deep


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    return json.loads(program("pytorch", "mode_attention.py"))


def test_attention_and_its_gradients_are_close_to_float64s(results: dict[str, Any]) -> None:
    assert results["far"] == []


def test_a_query_depends_on_the_keys_that_it_sees_alone(results: dict[str, Any]) -> None:
    assert results["split"] == []


def test_added_numbers_second_gradients_dropout_and_vmap(results: dict[str, Any]) -> None:
    assert results["others"] == []


def test_jax() -> None:
    assert json.loads(program("jax", "jax_attention.py")) == {"split": {}, "products": []}


def test_keras() -> None:
    assert json.loads(program("tensorflow", "tensorflow_attention.py")) == {}
