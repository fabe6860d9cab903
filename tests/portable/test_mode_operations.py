"""Operations that the modes of several frameworks have: one definition, the same bits."""

import json

import pytest

from support.programs import program


def fingerprints(framework: str) -> dict[str, str]:
    """By operation."""
    return json.loads(program(framework, "mode_operations.py", framework))


@pytest.fixture(scope="module")
def pytorch() -> dict[str, str]:
    return fingerprints("pytorch")


@pytest.mark.parametrize(("framework", "count"), [("tensorflow", 57), ("jax", 52)])
def test_operations_have_the_bits_of_pytorchs(framework: str, count: int, pytorch: dict[str, str]) -> None:
    result = fingerprints(framework)
    assert len(result) == count
    assert [name for name, bits in result.items() if bits != pytorch[name]] == []
