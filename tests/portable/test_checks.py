"""The self-check refuses planted faults."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from reference.checks import expected
from repro.portable.backends.checks import cases as checks
from support.programs import program

pytestmark = pytest.mark.deep

FRAMEWORKS = ("pytorch", "tensorflow", "jax")
NAMES = {"pytorch": ["PyTorch"], "tensorflow": ["TensorFlow", "XLA in TensorFlow"], "jax": ["JAX"]}
PLANTED = [
    "a product of matrices",
    "a convolution",
    "a convolution's gradient with respect to its kernel",
    "a convolution's gradient with respect to its images",
    "the reciprocal of a root",
    "rounding to a quantization grid",
    "the softmax cross-entropy",
]
"""The cases that compute by what was planted, each by something else."""


@cache
def checked(framework: str, part: str) -> Any:
    """The result of a framework's self-check in a part of self_checks.py."""
    return json.loads(program(framework, "self_checks.py", framework, part))


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_it_passes_here_and_refuses_what_is_planted(framework: str) -> None:
    result = checked(framework, "faults")
    assert result["none"] == "float64"
    assert "a rounding to float32 between two operations" in result["unrounded"]
    assert "a step of SGD" in result["rounded elsewhere"]
    assert list(result["many"]) == NAMES[framework]
    for titles in result["many"].values():
        assert set(titles) >= set(PLANTED)


def test_it_refuses_a_conversion_that_xla_drops() -> None:
    """The real fault, which shows on a CPU, too: a plain conversion, and the flag as XLA has it by default."""
    answer = checked("jax", "faults")["converted"]
    assert "the maximum of numbers rounded to float32 by the rules on this device" in answer
    assert checked("jax", "dropped") == "float64"


def test_int8_units_that_saturate_are_found_out() -> None:
    if "avx512_vnni" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this CPU has no AVX-512 VNNI: PyTorch multiplies int8 by loops of its own, which are exact")
    int8, auto, (line, again) = checked("pytorch", "saturated")
    assert line == again and "PyTorch does not compute a product of matrices by the rules on this device" in line
    assert line.endswith("so the matmul backend is not int8")
    assert int8 == "float64" and auto in ("float64", "int16")


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_kernels_of_int16_that_fail_are_found_out(framework: str) -> None:
    result = checked(framework, "faults")["int16"]
    if result is None:
        pytest.skip("this CPU has no instruction that multiplies and adds pairs of int16")
    kernel, product = "a convolution's gradient with respect to its kernel", "a product of matrices, rounded to float32"
    assert result["titles"] == [kernel, product]
    (line,) = result["said"]
    assert f" does not compute {kernel} by the rules" in line
    assert line.endswith("so the matmul backend is not int16") and result["engine"] == "float64"


@pytest.mark.parametrize("framework", ["jax", "tensorflow"])
def test_a_matmul_backend_that_is_not_there_is_float64(framework: str) -> None:
    engine, (line,) = checked(framework, "without_llvmlite")
    assert line.endswith("has no matmul backend int16 on this device, so it is float64") and engine == "float64"


@pytest.mark.parametrize("framework", ["jax", "tensorflow"])
def test_an_xla_that_does_not_call_kernels(framework: str) -> None:
    engine, (why, line) = checked(framework, "with_another_xla")
    assert " compiled here: " in why and "repro_" in why  # the name of a function
    assert line.endswith("has no matmul backend int16 on this device, so it is float64") and engine == "float64"


ROUNDINGS = 3 * 8  # of each of eight weights the gradient, the momentum, and the weight itself


@pytest.mark.parametrize("framework", ["jax", "tensorflow"])
def test_a_compiled_step_holds_every_rounding(framework: str) -> None:
    written, compiled = map(int, program(framework, "compiled_steps.py", framework).split())
    assert compiled >= ROUNDINGS
    assert written >= ROUNDINGS


@pytest.mark.parametrize("wanted", ["auto", "int8"])
def test_a_library_that_lacks_the_products_of_an_engine_takes_float64(
    wanted: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Backend:
        engine = "float64"

    def run() -> dict[str, tuple]:
        if Backend.engine == "int8":
            raise RuntimeError("CUBLAS_STATUS_NOT_SUPPORTED\nwhen calling cublasLtMatmul")
        return expected()

    checks.choose_engine("PyTorch", Backend, wanted, run, lambda: None)  # type: ignore[arg-type]
    assert Backend.engine == "float64"
    assert "PyTorch has no such products on this device (RuntimeError: CUBLAS_STATUS_NOT_SUPPORTED)" in caplog.text


def test_the_fingerprints_are_those_of_the_reference_implementation() -> None:
    assert {
        name: [checks.fingerprint(each) for each in results] for name, results in expected().items()
    } == checks.expected()
