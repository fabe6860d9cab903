"""The mode for any TensorFlow program."""

import json
from functools import cache
from typing import Any

import pytest

from support.programs import program

pytestmark = pytest.mark.deep

OTHER_CPU = {
    "TF_NUM_INTRAOP_THREADS": "1",
    "TF_NUM_INTEROP_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "TF_ENABLE_ONEDNN_OPTS": "0",
    "ONEDNN_MAX_CPU_ISA": "SSE41",
    "OPENBLAS_CORETYPE": "Nehalem",
}
NAMED = {
    "MatMul": "a product of matrices",
    "Conv2D": "a convolution",
    "Sum": "a sum of numbers",
    "Exp": "an elementary function",
    "random_normal": "a random number",
}
REFUSED = {
    "fft": "RFFT of float32 [8388609]",
    "root": "MatrixSquareRoot of float32 [3, 3]",
    "branch": "MatrixSquareRoot of float32 [3, 3]",
    "layer": "MatrixSquareRoot of float32 [1, 3, 3]",
    "complex": "MatrixDeterminant of complex128 [1, 1]",
    "complex sparse": "SparseAdd of int64 [1, 2], complex128 [1], int64 [2]",
    "complex sparse graph": "SparseAdd of int64 [None, 2], complex128 [None]",
    "binomial": "StatelessRandomBinomial of",
    "sampler": "LearnedUnigramCandidateSampler of int64 [1, 1]",
    "xla": "XlaClusterOutput of float32 [3]",
    "saved": "a SavedModel",
    "loaded": "Exp of float32 [2]",
    "interpreter": "TFLite's interpreter",
    "signature": "TFLite's interpreter",
    "calibration": "a calibration by TFLite",
    "traced": "the conversion of a function that was traced",
    "session": "the conversion of a function that was traced",
    "code": "XLA's code of a function",
}
NO_OPERATION = {"saved", "interpreter", "signature", "calibration", "traced", "session", "code"}


@cache
def results() -> dict[str, Any]:
    return json.loads(program("tensorflow", "tensorflow_mode.py"))


@cache
def fitted(*arguments: str, **variables: str) -> dict[str, Any]:
    return json.loads(program("tensorflow", "tensorflow_fit.py", *arguments, **variables))


def test_each_operation_rounds_by_itself_in_eager_code_graphs_sessions_datasets_and_where_xla_was_asked_for() -> None:
    assert set(results()["hazards"].values()) == {True}
    assert len(results()["hazards"]) == 12
    assert results()["without"]


def test_a_number_that_an_integer_cannot_hold_becomes_the_nearest_one_and_nan_0() -> None:
    assert results()["conversions"] == {"eager": [], "graph": [], "raw": []}


def test_gradients_are_the_same_in_eager_code_and_graphs_and_through_loops() -> None:
    assert set(results()["gradients"].values()) == {True}


def test_products_of_matrices_are_their_definition_whichever_way_they_lie() -> None:
    assert set(results()["products"].values()) == {True}
    assert len(results()["products"]) == 16


def test_convolutions_by_kernels_are_those_of_float64() -> None:
    assert set(results()["convolutions"].values()) == {True}
    assert len(results()["convolutions"]) == 6


def test_threads_share_a_kernel_for_one_call_at_a_time_and_anew_in_a_forked_process() -> None:
    assert results()["threads"] == dict.fromkeys(("one", "four", "child", "shared"), True)


def test_graphs_run_definitions_without_python_with_the_bits_of_eager_code() -> None:
    results = json.loads(program("tensorflow", "tensorflow_native.py"))
    assert {name: case for name, case in results["cases"].items() if set(case.values()) != {True}} == {}
    assert results["derivatives"]
    assert results["threads"]
    assert results["precisions"]
    assert "ValueError: matrices [2, 3] and [4, 5] have no product" in results["error"]
    assert "a graph of another process" in results["elsewhere"]


def test_gradients_of_an_arrays_place_are_all_added_and_in_one_order() -> None:
    results = json.loads(program("tensorflow", "tensorflow_arrays.py"))
    assert results["gathered"] == {"eager": [70.0, 30.0], "graph": [70.0, 30.0]}
    assert results["cases"] == {"reads": [[0.0, 0.0]], "read_and_gathered": [[1.0, 0.0]], "turns": [[0.0, 0.0]]}
    assert results["refused"].startswith("portable numerics: TensorArrayGradV3 at ")
    assert "tensorflow_arrays.py" in results["refused"]


def test_samples_have_their_distribution_their_gradient_and_the_same_bits_in_graphs() -> None:
    assert set(results()["samples"].values()) == {True}


def test_linear_systems_are_solved_and_have_gradients() -> None:
    assert set(results()["systems"].values()) == {True}


def test_images_of_bytes_are_resized_as_those_of_float32() -> None:
    assert set(results()["images"].values()) == {True}


def test_classes_are_drawn_as_often_as_expected() -> None:
    assert set(results()["classes"].values()) == {True}


def test_zeros_nan_and_lengths_of_ranges_are_as_tensorflow_has_them() -> None:
    assert results()["ends"] == []


def test_boxes_regions_and_places_of_maxima_are_those_of_tensorflows_kernels() -> None:
    assert results()["regions"] == []


def test_what_has_no_portable_form_is_refused_by_name_and_line() -> None:
    said, lines = results()["refusals"], results()["lines"]
    assert said.keys() == REFUSED.keys()
    for case, text in said.items():
        what, _, rest = text.removeprefix("portable numerics: ").partition(" at ")
        assert what.startswith(REFUSED[case]), text
        file, number, _ = rest.split(":", 2)
        assert file.endswith("tensorflow_mode.py"), text
        assert 0 <= int(number) - lines[case] <= 5, text
        assert "\n" not in text
        assert "--allow" in text or case in NO_OPERATION


def test_a_network_can_be_converted_for_tflite() -> None:
    assert results()["converted"] == [[0.0, 36.0]]


def test_the_self_check_names_each_planted_fault() -> None:
    said = results()["faults"]
    assert said.pop("none") == ""
    begin = "portable numerics: TensorFlow "
    assert all(text.startswith(begin) for text in said.values())
    parts = {
        fault: text.partition(" does not compute ")[2].partition(" by the rules")[0] for fault, text in said.items()
    }
    assert parts == NAMED


def test_switches_say_what_is_wrong_with_them_and_what_was_let_through() -> None:
    said = results()["switches"]
    assert "call disable() first" in said["again"]
    assert said["off"]
    assert "--allow Svdd" in said["name"] and "did you mean Svd?" in said["name"]
    assert "no precision 'low'" in said["precision"]
    assert said["allowed"] == {"Svd": 1}
    assert said["summary"].endswith("run natively: Svd")
    assert {"MatMul", "Softmax", "TanhGrad", "Log"} <= results()["counted"]["operations"].keys()


def test_fit_computes_its_layers_portably() -> None:
    assert {"Conv2D", "DepthwiseConv2dNative", "Einsum", "Qr", "MaxPoolGrad"} <= fitted()["operations"].keys()


def test_fit_has_one_result_with_any_threads_and_instructions() -> None:
    other = fitted(**OTHER_CPU)
    assert other["threads"] == 1
    assert other["hashes"] == fitted()["hashes"]


def test_what_goes_round_operations_has_one_result() -> None:
    results = json.loads(program("tensorflow", "tensorflow_ways.py"))
    assert len(results["fit"]) == 4 and len(set(results["fit"].values())) == 1
    assert len(results["data"]) == 5 and len(set(results["data"].values())) == 1
    assert results["conversions"] == []


def test_fit_has_one_result_eagerly() -> None:
    assert fitted("--eager")["hashes"] == fitted()["hashes"]
