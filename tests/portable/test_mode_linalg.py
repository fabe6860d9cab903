"""Linear algebra of PyTorch under the mode: how right it is, and what is said where it fails."""

import json
from typing import Any

import pytest

from support.programs import program

pytestmark = pytest.mark.deep

PRODUCTS = ("lu of", "lu_unpack", "qr of", "eigh", "svd of")
"""Cases that multiply their factors, by operands of 13 bits in float32."""

SINES = ("eigh", "svd of")
"""Sines of values about 10 in size, whose own errors are relative to the largest: those of the sines are ten times larger."""


@pytest.fixture(scope="module")
def linear() -> dict[str, Any]:
    return json.loads(program("pytorch", "mode_linalg.py"))


def test_float64_is_as_right_as_lapack_with_its_gradients(linear: dict[str, Any]) -> None:
    errors = linear["errors"]["float64"]
    assert len(errors) == 42
    limits = {name: 2.0**-44 if name.startswith(SINES) else 2.0**-46 for name in errors}
    assert {name: pair for name, pair in errors.items() if max(pair) > limits[name]} == {}


def test_float32_is_rounded_once_and_its_gradients_are_products_of_13_bits(linear: dict[str, Any]) -> None:
    errors = linear["errors"]["float32"]
    limits = {name: (2.0**-11 if name.startswith(PRODUCTS) else 2.0**-20, 2.0**-8) for name in errors}
    assert {
        name for name, (value, slope) in errors.items() if value > limits[name][0] or slope > limits[name][1]
    } == set()


def test_the_layout_of_a_matrix_changes_no_bit(linear: dict[str, Any]) -> None:
    assert linear["layouts"] == []


def test_a_power_of_two_scales_singular_values_and_changes_no_bit_of_their_vectors(linear: dict[str, Any]) -> None:
    assert linear["scaled"] == []


def test_errors_are_pytorchs_own(linear: dict[str, Any]) -> None:
    said = linear["said"]
    assert "linalg.inv: The diagonal element 1 is zero" in said["singular"]
    assert "Batch element 1): The solver failed because the input matrix is singular" in said["singular system"]
    assert "Batch element 1): The factorization could not be completed" in said["not positive"]
    assert "the leading minor of order 2 is not positive-definite" in said["not positive"]
    assert (said["place"], said["of nothing"], said["determinant 0"]) == ("2", "(1.0, 0, 0)", "-inf")


def test_what_has_no_definition_is_refused(linear: dict[str, Any]) -> None:
    assert "factors without pivots have no portable form; give pivot=True" in linear["said"]["without pivots"]
    assert "RefusedError: portable numerics: linalg_eigvals of float32 [3, 3]" in linear["said"]["eigenvalues"]


def test_reflections_multiply_from_both_sides(linear: dict[str, Any]) -> None:
    assert len(linear["reflected"]) == 4
    assert max(linear["reflected"]) < 2.0**-48


def test_matrices_of_less_rank_have_the_inverse_of_the_rest(linear: dict[str, Any]) -> None:
    result = linear["deficient"]
    assert max(result["pinv"], result["solution"], result["values"]) < 2.0**-46
    assert (result["rank"], result["residuals"], result["cut"]) == ([2, 2, 2], [0], [[0.25, 0.0], [0.0, 0.0]])
    assert "does not have full rank" in result["gels"]


def test_exponentials_and_least_squares_of_nothing_of_numbers_and_of_a_batch(linear: dict[str, Any]) -> None:
    result = linear["ends"]
    assert (result["alone"], result["numbers"], result["infinite"]) == (True, True, True)
    assert result["of nothing"] == [[3, 2], [2, 3, 0], [0, 4, 4]]
    assert "input must have at least 2 dimensions" in result["columns"]
    assert "should be one of (gels, gelsy, gelsd, gelss)" in result["driver"]
