"""The mode stays whole: threads, forks, exceptions, compilers, tracers, other modes."""

import json
from typing import Any

import pytest

from support.programs import program

pytestmark = pytest.mark.deep

NOTE = "portable numerics: torch.compile runs eagerly, as kernels that it makes have no portable form\n"
ON = "portable: they are on already, with other options; call disable() first"
OPERATIONS = ["aten.matmul.default", "aten.tanh.default", "aten.sum.default", "aten.add.Tensor"]
TRACED = [[True, True, dict.fromkeys(("call", "line", "return"), True)]] * 2
PROFILED = [[True, True, dict.fromkeys(("call", "return"), True)]] * 2
EXPECTED: dict[str, Any] = {
    "threads_train_alike_and_are_counted": [True] * 3,
    "a_forked_child_has_the_mode_and_may_leave_it": 0,
    "a_child_of_several_threads_has_several_threads": 0,
    "workers_of_a_loader_have_the_mode": True,
    "threads_of_autograd_have_the_mode": [True] * 2,
    "it_may_be_switched_on_while_another_thread_runs": True,
    "exceptions_within_a_definition_leave_it_whole": [True] * 4,
    "handlers_and_finalizers_amid_a_definition_compute_portably": [True, True, True, [True] * 2, True, [True], False],
    "tracers_and_profilers_amid_a_definition_compute_portably": [*TRACED, *PROFILED, False],
    "contexts_nest": [True] * 4,
    "other_options_are_refused_while_it_is_on": [ON] * 2,
    "other_modes_and_subclasses_go_along": dict.fromkeys(
        [
            "subclass",
            "dispatch mode",
            "function mode",
            "counter",
            "inference",
            "anomaly",
            "profiler",
            "device",
            "saved tensors",
        ],
        True,
    ),
    "hooks_of_saved_tensors_compute_portably": True,
    "defaults_of_types_and_devices": [True, "meta", True],
    "questions_about_the_machine_have_one_answer": ["AVX2", "AVX2", "torch.float32", "None", True],
    "numbers_of_threads_and_cores_have_one_answer": [4, 4, 4, 4, 4, True, False, 3, 3, 4, True, True, True],
    "compiled_functions_run_eagerly_and_one_note_says_so": [True, True, True, NOTE],
    "modules_and_optimizers_that_are_compiled_are_what_they_are_otherwise": [
        ["_orig_mod.weight", "_orig_mod.bias"],
        1,
    ],
    "scripted_functions_come_by": [True] * 4,
    "tracers_see_the_operations_of_pytorch": {
        "export False": [OPERATIONS, True],
        "export True": [OPERATIONS, True],
        "fake": [3, 5],
        "fx": ["aten.mm.default", *OPERATIONS[1:]],
    },
    "transforms_of_functions_come_by": [True] * 3,
    "flex_attention_runs_eagerly": True,
}


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    return json.loads(program("pytorch", "mode_whole.py"))


@pytest.mark.parametrize("name", EXPECTED)
def test_the_mode_stays_whole(results: dict[str, Any], name: str) -> None:
    assert results[name] == EXPECTED[name]


def test_no_case_is_left_out(results: dict[str, Any]) -> None:
    assert results.keys() == EXPECTED.keys()
