"""Messages about operations without a portable form, and where they were called."""

import json
from typing import Any

import pytest

from support.programs import program
from support.runs import PROGRAMS

pytestmark = pytest.mark.deep
ONCE = "compute it once, outside of the training, and load its result, or "
LINES = (PROGRAMS / "mode_refusals.py").read_text().splitlines()


def line(mark: str) -> str:
    """The line of the program with this comment."""
    return f"line {1 + next(place for place, text in enumerate(LINES) if text.endswith(f'# {mark}'))}"


def text(name: str, values: str, where: str, remedy: str = ONCE, why: str = "it has no portable form") -> str:
    allowed = f'run it natively with --allow {name}, or in a script with enable(allow=["{name}"])'
    return f"portable numerics: {name} of {values} at {where}: {why}; {remedy}{allowed}"


SQUARE = "float32 [3, 3]"
HISTOGRAM = "use histc, or "


@pytest.fixture(scope="module")
def said() -> dict[str, Any]:
    return json.loads(program("pytorch", "mode_refusals.py"))


def test_what_where_the_value_and_the_remedy(said: dict[str, Any]) -> None:
    assert said["forward"] == text("histogram", SQUARE, line("HERE"), HISTOGRAM)
    assert (
        "fft_r2c of float32 [8388609]" in said["transform"]
        and "a transform of more than 8388608 numbers has no portable form; transform frames that overlap, or"
        in said["transform"]
    )
    assert "sparse_softmax" in said["sparse"] and "use a dense tensor, or run it natively" in said["sparse"]
    assert (
        "linalg_cholesky_ex of complex64 [3, 3]" in said["complex"]
        and "complex numbers have no portable form" in said["complex"]
    )


def test_the_line_is_the_programs_where_a_library_calls(said: dict[str, Any]) -> None:
    assert said["library"] == text("histogramdd_bin_edges", SQUARE, line("LIBRARY"), HISTOGRAM)


def test_of_a_backward_pass_the_line_that_called_it_and_of_anomaly_mode_the_forwards(said: dict[str, Any]) -> None:
    where = f"portable numerics: mul of {SQUARE}, {SQUARE} at {line('BACKWARD')}, in MulBackward0 of backward()"
    assert said["backward"].startswith(f"{where}: ")
    assert said["anomaly"].startswith(f"{where} for {line('FORWARD')}: ")


def test_the_line_of_a_worker(said: dict[str, Any]) -> None:
    assert said["worker"].endswith(text("histogram", SQUARE, line("WORKER"), HISTOGRAM))


@pytest.mark.parametrize(
    ("source", "where", "values"),
    [
        ("command line", "<string>:3", "float32 [2, 2]"),
        ("cell", "<ipython-input-3>:1", "float32 [2, 2]"),
        ("source that is gone", "folder/program.py:2", SQUARE),
    ],
)
def test_the_line_of_a_program_without_a_file(said: dict[str, Any], source: str, where: str, values: str) -> None:
    assert said[source].endswith(text("histogram", values, where, HISTOGRAM))


@pytest.mark.parametrize("how", ["loaded", "imported"])
def test_operations_of_a_library_that_comes_later_are_refused_but_of_integers(said: dict[str, Any], how: str) -> None:
    assert said["later"][how].startswith(f"portable numerics: {how}::double of {SQUARE} at ")
    assert f"--allow {how}::double" in said["later"][how]
    assert said["later"][f"{how}, integers"] == "passed"


def test_operations_that_python_defines_pass(said: dict[str, Any]) -> None:
    assert said["later"]["custom"] == "passed"


def test_only_extensions_that_need_pytorch_are_looked_through(said: dict[str, Any]) -> None:
    assert said["needs PyTorch"] == [True, False]


def test_every_operation_of_the_dispatcher_is_of_a_known_kind(said: dict[str, Any]) -> None:
    assert said["kinds"].pop("none") == []
    assert said["kinds"].keys() == {"exact", "guarded", "special", "defined", "replaced", "composed", "refused"}
    assert {"aten::_sparse_mm_reduce_impl", "aten::hspmm", "aten::linalg_eig"} < {*said["kinds"]["refused"]}


def test_an_operation_of_sparse_tensors_may_be_let_through(said: dict[str, Any]) -> None:
    assert said["allowed layouts"] == [True, 1]


@pytest.mark.parametrize(
    ("call", "name"),
    [
        *((f"mm {kind}", "sparse_mm_reduce_impl") for kind in ("sum", "mean", "amax", "amin")),
        *(("hspmm", "hspmm"), ("softmax", "sparse_softmax"), ("matmul", "sparse_sparse_matmul")),
        *(("sums by rows", "add"), ("sparse product", "mul")),
        *(("sparse norm", "native_norm"), ("fbgemm", "fbgemm_pack_gemm_matrix_fp16")),
    ],
)
def test_operations_that_compute_by_themselves_are_refused(said: dict[str, Any], call: str, name: str) -> None:
    assert said["layouts"][call].startswith(f"portable numerics: {name} of float32 [3, 3]")
