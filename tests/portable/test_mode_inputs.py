"""Bad and unusual arguments under the mode: PyTorch's errors, special numbers, empty tensors, views of any kind."""

import json
from typing import Any

import pytest

from support.programs import program

pytestmark = pytest.mark.deep


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    return json.loads(program("pytorch", "mode_inputs.py"))


def test_what_pytorch_refuses_is_refused_in_its_words(results: dict[str, Any]) -> None:
    assert results["errors"] == {}
    assert results["no errors"] == []


def test_results_and_gradients_of_unusual_shapes_are_pytorchs(results: dict[str, Any]) -> None:
    assert results["shapes"] == {}


def test_a_norm_over_several_axes_is_one_over_a_row(results: dict[str, Any]) -> None:
    assert results["normalized"] == [True] * 12


def test_special_numbers_stay_in_their_group(results: dict[str, Any]) -> None:
    rows = ["nan", "6.0", "nan"]
    assert results["special numbers"] == {
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


def test_a_number_that_an_integer_cannot_hold_becomes_the_nearest_one_and_nan_0(results: dict[str, Any]) -> None:
    assert results["conversions"] == []


OUTSIDE = "0.0 [0.0, 0.0] 0.0"
NONE = "nan [nan, nan] 0.0"


def edges(first: str, last: str) -> list[str]:
    """NaN counts as the first pixel; infinities as the edges."""
    return [first, last, first]


PLACES = {
    "bilinear zeros": [NONE] * 3,
    "bilinear border": edges("8.0 [0.0, 8.0] 1.0", "11.0 [0.0, 8.0] 1.0"),
    "bilinear reflection": ["8.0 [0.0, 8.0] 1.0"] * 3,
    "nearest zeros": [OUTSIDE] * 3,
    "nearest border": edges("8.0 [0.0, 0.0] 1.0", "11.0 [0.0, 0.0] 1.0"),
    "nearest reflection": ["8.0 [0.0, 0.0] 1.0"] * 3,
    **{f"bicubic {padding}": [NONE] * 3 for padding in ("zeros", "border", "reflection")},
    "volume": ["0.0 [0.0, 0.0, 0.0] 0.0"] * 3,
}


def test_places_in_an_image_that_are_no_numbers(results: dict[str, Any]) -> None:
    assert results["places"] == PLACES


def test_logit_counts_numbers_beyond_eps_as_eps_also_where_that_is_large(results: dict[str, Any]) -> None:
    three, seven, nan = "1.0986123085021973", "1.945910096168518", "nan"
    inside = ["9.142857551574707", "4.0", "9.142857551574707", nan, nan]
    assert results["logits"] == {
        "0.75": [[three, three, f"-{three}", f"-{three}", nan], [*["0.0"] * 4, nan]],
        "0.25": [[f"-{three}", "0.0", three, three, nan], ["0.0", "4.0", "0.0", "0.0", nan]],
        "-0.5": [[f"-{seven}", "0.0", seven, nan, nan], inside],
        "None": [[f"-{seven}", "0.0", seven, nan, nan], inside],
        "integers": ["-inf", "inf"],
    }


def test_renorm_scales_rows_of_any_size(results: dict[str, Any]) -> None:
    scaled = {
        "0.5": ["0.21539029479026794", "0.2871870696544647"],
        "1": ["0.4285714626312256", "0.5714285969734192"],
        "2": ["0.6000000238418579", "0.800000011920929"],
        "inf": ["0.75", "1.0"],
    }
    rest = [["1.0", "0.0"], ["0.0", "0.0"], ["9.99994610111476e-41", "0.0"], ["nan", "0.0"], ["nan", "4.0"]]
    halves = {p: ["0.25", "0.25"] if p == "0.5" else ["0.5", "0.5"] for p in scaled}
    assert results["renormed"] == {p: [row, halves[p], *rest] for p, row in scaled.items()}


def test_a_sum_that_is_too_long_is_an_error_that_names_both_numbers(results: dict[str, Any]) -> None:
    said = "portable numerics: a sum of {} numbers is too long to be exact: {} are the most; make the batch or the layer smaller"
    assert results["too long"] == [said.format(length + 1, length) for length in (2**29, 2**27)]


def test_empty_tensors(results: dict[str, Any]) -> None:
    shapes = results["nothing"].pop("shapes")
    assert results["nothing"] == {
        "sum": "0.0",
        "mean": "nan",
        "product over nothing": ["0.0", "0.0"],
        "linear over nothing": ["1.0", "1.0"],
        "loss": "nan",
        "scattered": ["1.0", "1.0"],
    }
    images = [[0, 2, 2, 2], [0, 1, 2, 2]]
    assert shapes == [[0, 3], [0, 4], [0, 2, 4], *images, [0, 3], [0, 3], [0, 1, 4, 8], [0, 3], [3, 0], [0], [0], [0]]


def test_tensors_without_an_axis(results: dict[str, Any]) -> None:
    assert results["no axis"] == ["0.5", "0.5", "1.0", "0.5", "0.5", "0.5", "0.5"]


def test_a_view_has_the_bits_of_a_copy(results: dict[str, Any]) -> None:
    names = ("expanded", "overlapping", "transposed", "strided", "negative", "at an odd address")
    assert results["memory"] == {name: [] for name in names}


def test_a_remainder_is_exact_though_the_quotient_is_too_large(results: dict[str, Any]) -> None:
    assert results["remainders"] == [True] * 14
