"""Bad and unusual arguments under the mode: PyTorch's errors, special numbers, empty tensors, views of any kind."""

import json
from typing import Any

import pytest

from support.programs import program


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return json.loads(program("pytorch", "mode_inputs.py"))


def test_what_pytorch_refuses_is_refused_in_its_words(found: dict[str, Any]) -> None:
    assert found["errors"] == {}
    assert found["no errors"] == []


def test_special_numbers_stay_in_their_group(found: dict[str, Any]) -> None:
    rows = ["nan", "6.0", "nan"]
    assert found["special numbers"] == {
        "sum": rows,
        "product": rows,
        "products of float64": rows,
        "softmax": ["nan", "0.6652409434318542", "nan"],
        "masked": ["0.0", "0.5", "0.5"],
        "tanh": ["nan", "1.0", "-1.0"],
        "exp": ["nan", "inf", "0.0"],
        "log": ["nan", "nan", "-inf", "inf"],
        "too large": "nan",
        "too large a half": "inf",
    }


def test_a_number_that_an_integer_cannot_hold_becomes_the_nearest_one_and_nan_0(found: dict[str, Any]) -> None:
    assert found["conversions"] == []


def test_a_sum_that_is_too_long_is_an_error_that_names_both_numbers(found: dict[str, Any]) -> None:
    said = "portable numerics: a sum of {} numbers is too long to be exact: {} are the most; make the batch or the layer smaller"
    assert found["too long"] == [said.format(length + 1, length) for length in (2**29, 2**27)]


def test_empty_tensors(found: dict[str, Any]) -> None:
    shapes = found["nothing"].pop("shapes")
    assert found["nothing"] == {
        "sum": "0.0",
        "mean": "nan",
        "product over nothing": ["0.0", "0.0"],
        "linear over nothing": ["1.0", "1.0"],
        "loss": "nan",
        "scattered": ["1.0", "1.0"],
    }
    images = [[0, 2, 2, 2], [0, 1, 2, 2]]
    assert shapes == [[0, 3], [0, 4], [0, 2, 4], *images, [0, 3], [0, 3], [0, 1, 4, 8], [0, 3], [3, 0], [0], [0], [0]]


def test_tensors_without_an_axis(found: dict[str, Any]) -> None:
    assert found["no axis"] == ["0.5", "0.5", "1.0", "0.5", "0.5", "0.5", "0.5"]


def test_a_view_has_the_bits_of_a_copy(found: dict[str, Any]) -> None:
    names = ("expanded", "overlapping", "transposed", "strided", "negative", "at an odd address")
    assert found["memory"] == {name: [] for name in names}


def test_a_remainder_is_exact_though_the_quotient_is_too_large(found: dict[str, Any]) -> None:
    assert found["remainders"] == [True] * 14
