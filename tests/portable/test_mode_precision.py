"""Precision of the mode for any PyTorch program."""

import json

import pytest

from support.programs import program

pytestmark = pytest.mark.deep


def test_products_with_both_precisions_are_those_of_the_reference_implementation() -> None:
    content = json.loads(program("pytorch", "mode_precision.py"))
    names = {"mm", "addmm", "bmm", "linear", "convolution", "images", "kernel"}
    assert content["high"] == dict.fromkeys(names, 0)
    assert content["highest"] == dict.fromkeys(names, 0)
    assert content["error"] == "portable numerics: no precision 'medium'; there are high, highest"
