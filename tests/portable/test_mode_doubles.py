"""float64 under the mode for any PyTorch program."""

import json

import pytest

from support.programs import program

pytestmark = pytest.mark.portable


def test_float64_is_as_exact_as_pytorchs_and_has_one_result_with_any_threads() -> None:
    found = json.loads(program("pytorch", "mode_doubles.py"))
    assert found["1 threads"] == found["2 threads"]
    assert {name: error for name, error in found["errors"].items() if error > 0.5} == {}
    assert set(found["errors"]) == {"product", "sum", "scan", "squares"}
    assert len(found["away"]) == 8
    assert {name: error for name, error in found["away"].items() if error > 1e-13} == {}
