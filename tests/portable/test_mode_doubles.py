"""float64 under the mode for any PyTorch program."""

import json

import pytest

from support.programs import program

pytestmark = pytest.mark.deep


def test_float64_is_as_exact_as_pytorchs_and_has_one_result_with_any_threads() -> None:
    content = json.loads(program("pytorch", "mode_doubles.py"))
    assert content["1 threads"] == content["2 threads"]
    assert {name: error for name, error in content["errors"].items() if error > 0.5} == {}
    assert set(content["errors"]) == {"product", "sum", "scan", "squares"}
    assert len(content["away"]) == 8
    assert {name: error for name, error in content["away"].items() if error > 1e-13} == {}
