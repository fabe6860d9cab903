"""Complex numbers and Fourier transforms: one result in three frameworks, beside complex128."""

import json
from typing import Any

import pytest

from programs.mode_complex import ARGUMENTS
from repro.frameworks import FRAMEWORKS
from repro.verify.command_questions import SSE4, THREADS
from support.programs import program

pytestmark = pytest.mark.deep

Results = dict[str, dict[str, tuple[list[str], list[float]]]]
COMPOSED = {"tensorflow": {"sgn"}, "jax": {"cumprod"}}
"""What a framework makes of other operations."""


@pytest.fixture(scope="module")
def results() -> Results:
    return {name: json.loads(program(name, "mode_complex.py", name)) for name in FRAMEWORKS}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_an_operation_has_one_result_in_three_frameworks(name: str, results: Results) -> None:
    digests = {each: results[each][name][0][0] for each in FRAMEWORKS if name not in COMPOSED.get(each, ())}
    assert len(digests) > 1
    assert len(set(digests.values())) == 1, digests


@pytest.mark.parametrize("framework", ["pytorch", "tensorflow"])
def test_results_and_gradients_are_those_of_complex128(framework: str, results: Results) -> None:
    """Relative to the largest number of each; products of matrices are here of numbers that 13 bits hold."""
    errors = {name: error for name, (_, errors) in results[framework].items() for error in errors}
    assert errors.keys() == ARGUMENTS.keys()
    assert {name: error for name, error in errors.items() if error > 2.0**-23} == {}


def test_threads_and_instructions_change_nothing(results: Results) -> None:
    variables: dict[str, Any] = dict.fromkeys(THREADS, "4") | dict(SSE4)
    for framework in ("pytorch", "tensorflow"):
        others = json.loads(program(framework, "mode_complex.py", framework, **variables))
        digests = [{name: digest for name, (digest, _) in each.items()} for each in (others, results[framework])]
        assert digests[0] == digests[1]


def test_short_time_transforms_by_complex_windows_have_the_same_bits_or_are_refused_by_name() -> None:
    variables: dict[str, Any] = dict.fromkeys(THREADS, "4") | dict(SSE4)
    first, other = (json.loads(program("pytorch", "complex_windows.py", **more)) for more in ({}, variables))
    assert first == other
    said = {name: text for name, text in first.items() if text.startswith("portable numerics: ")}
    assert said.keys() == {name for name in first if name.startswith("istft")}
    assert all(text.startswith("portable numerics: unfold_backward of complex") for text in said.values())
    assert len(set(first.values())) == 6
