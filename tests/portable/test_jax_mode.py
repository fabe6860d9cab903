"""Portable numerics for any JAX program: repro.portable.modes.jax."""

import json
from pathlib import Path
from typing import Any

import pytest

from repro.verify.command_questions import SSE4
from support.programs import program
from support.runs import PROGRAMS

pytestmark = pytest.mark.deep

FOLDER = "jax_mode"
LINES = (PROGRAMS / FOLDER / "cases.py").read_text().splitlines()


def line(mark: str) -> str:
    """The line of the program with this comment."""
    return f"line {1 + next(place for place, text in enumerate(LINES) if text.endswith(f'# {mark}'))}"


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    return json.loads(program("jax", f"{FOLDER}/cases.py"))


@pytest.mark.parametrize("case", ["kernels", "transformations", "arithmetic", "reductions", "layers"])
def test_bits(case: str, results: dict[str, Any]) -> None:
    assert results[case] and [name for name, right in results[case].items() if right is not True] == []


def test_a_number_that_an_integer_cannot_hold_becomes_the_nearest_one_and_nan_0(results: dict[str, Any]) -> None:
    assert results["conversions"] == {"eager": [], "compiled": [], "constant": []}


def test_a_program_may_ask_for_more_bits(results: dict[str, Any]) -> None:
    errors = results["precision"]
    assert errors["float64"] < 1e-10 < errors["highest"] < 1e-2 < 1 < errors["default"]


def test_factors_of_matrices_and_special_functions(results: dict[str, Any]) -> None:
    assert max(results["factors"].values()) < 1e-6


def test_refusals(results: dict[str, Any]) -> None:
    said = results["refusals"]
    once = "it has no portable form; compute it once, outside of the training, and load its result"
    eager = f"portable numerics: schur of float32 [3, 3], float32 [3, 3], float32 [3, 3] at {line('EAGER')}: {once}"
    allow = 'or run it natively with --allow schur, or in a script with enable(allow=["schur"])'
    assert said["eager"] == f"{eager}, {allow}"
    assert (
        said["jit"].startswith("portable numerics: hessenberg of float32 [3, 3]")
        and f" at {line('JIT')}: " in said["jit"]
    )
    assert f" at {line('FFT')}: " in said["fft"] and "a transform of more than 8388608 numbers" in said["fft"]
    assert "pure_callback of float32 [3, 3]" in said["callback"] and "compute it with jax.numpy" in said["callback"]
    assert "lu of complex64" in said["complex"] and "complex numbers have no portable form" in said["complex"]
    assert "reduce of float32 [3, 3]" in said["reduction"] and "its function calls exp" in said["reduction"]
    assert (
        "call_exported of float32 [3, 3]" in said["exported"]
        and "call the function that was exported" in said["exported"]
    )
    assert (said["allowed"], said["summary"]) == ("passed", "run natively: schur")


def test_options_that_cannot_be(results: dict[str, Any]) -> None:
    said = results["errors"]
    assert said["name"].startswith("UsageError: portable: --allow svdd: JAX ") and "did you mean svd?" in said["name"]
    assert said["precision"] == "UsageError: portable numerics: no precision 'low'; there are high, highest"
    assert said["twice"] == "portable: they are on already, with other options; call disable() first"
    assert said["own again"] == "True"
    assert said["late"].startswith("portable: JAX has computed already") and "`repro portable`" in said["late"]


def network(*options: str, threads: int, **variables: str) -> str:
    return program("jax", f"{FOLDER}/network.py", *options, PJRT_NPROC=str(threads), **variables)


@pytest.fixture(scope="module")
def fingerprint() -> str:
    """Of the network, by kernels."""
    return network("portable", threads=2)


def test_a_network_has_the_same_bits_by_kernels_threads_and_instruction_sets(fingerprint: str) -> None:
    assert network("portable", "--plain", threads=1, **dict(SSE4)) == fingerprint


@pytest.mark.slow
def test_the_same_network_has_other_bits_without_portable_numerics() -> None:
    assert network("own", threads=2) != network("own", threads=1, **dict(SSE4))


def self_check(*options: str, cache: Path) -> Any:
    variables = {
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    return json.loads(program("jax", f"{FOLDER}/checks.py", *options, **variables))


def test_the_self_check_finds_each_liberty_of_xla_but_takes_none_from_its_cache(tmp_path: Path) -> None:
    result = self_check("liberties", cache=tmp_path)
    assert result["differ"] == ["contraction", "loop", "division", "root", "constants", "rounding"]
    assert result["said"].startswith(
        "portable numerics: JAX does not compute a product and a sum, each rounded by the rules"
    )
    assert list(tmp_path.iterdir())
    assert self_check(cache=tmp_path) == {"differ": [], "said": ""}


def test_the_self_check_passes_with_the_options_of_a_cpu_that_always_contracts(tmp_path: Path) -> None:
    assert self_check("aarch64", cache=tmp_path) == {"differ": [], "said": ""}
