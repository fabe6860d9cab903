"""Calls of PyTorch's modules in the steps that are asked for: what each takes and gives, in float32 and in float64."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from repro.record.arrays import array
from repro.record.lines import Process, processes
from repro.record.typed_lines import Call
from support.observed import SCRIPTS, ended, interpreter, lines, notes, start

PROGRAM = str(SCRIPTS / "pytorch_module_calls.py")


def trained(folder: Path, steps: str, *scenarios: str) -> tuple[list[Any], Process]:
    """What the program says, the same with the observer and without, and the lines of its process."""
    command = [interpreter("pytorch"), PROGRAM, *scenarios]
    alone = start(command, None)
    said = ended(start(command, folder, REPRO_OBSERVE_MODULES=steps, REPRO_OBSERVE_KEEP="1"))
    assert said == ended(alone)
    (process,) = processes(folder)
    assert not process.unseen
    return [json.loads(line) for line in said.splitlines()[:-1]], process


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("seen")


@pytest.fixture(scope="module")
def seen(folder: Path) -> tuple[dict[str, Any], Process]:
    said, process = trained(folder, "1", "seen")
    return said[0], process


def test_each_call_is_written_as_the_program_sees_it(seen: tuple[dict[str, Any], Process]) -> None:
    said, process = seen
    calls = [call for call in process.calls if call.type not in ("loss", "CrossEntropyLoss")]
    assert len(calls) > 8 and {call.step for call in process.calls} == {1}
    keys = ("module", "type", "inputs", "outputs", "weights", "buffers")
    assert [{key: getattr(call, key) for key in keys} for call in calls] == said["calls"]
    assert [call.number for call in process.calls] == [*range(1, len(process.calls) + 1)]
    assert all(call.training for call in calls)


def test_the_loss_comes_after_the_calls_and_gradients_are_not_clipped(seen: tuple[dict[str, Any], Process]) -> None:
    said, process = seen
    *_, criterion, loss = process.calls
    assert criterion.module == "CrossEntropyLoss" and criterion.outputs == loss.outputs == said["loss"]
    (backward,) = process.backward
    assert backward.gradients == said["gradients"] != process.steps[1]["gradients"]


def test_a_model_in_float64_has_the_exact_values(seen: tuple[dict[str, Any], Process]) -> None:
    said, process = seen
    exact = said["exact"]
    for call in process.calls:
        name = "loss" if call.type == "CrossEntropyLoss" else call.module
        assert call.exact == exact[name], name
    assert process.backward[0].exact == exact["gradients"]


def both(folder: Path, call: Call) -> tuple[np.ndarray, np.ndarray]:
    """The first output of a call in float32 and in float64."""
    arrays = [array(folder / "kept", next(iter(codes.values()))) for codes in (call.outputs, call.exact)]
    assert arrays[0] is not None and arrays[1] is not None
    return arrays[0], arrays[1]


def test_exact_values_are_near_and_not_equal(seen: tuple[dict[str, Any], Process], folder: Path) -> None:
    (call,) = [call for call in seen[1].calls if call.module == "head"]
    ordinary, exact = both(folder, call)
    assert ordinary.dtype == np.float32 and exact.dtype == np.float64
    assert 0 < np.abs(ordinary - exact).max() < 1e-5


def test_the_lstm_of_a_cpu_is_computed_in_another_way(tmp_path: Path) -> None:
    said, process = trained(tmp_path, "1", "recurrent")
    (memory,) = [call for call in process.calls if call.module == "memory"]
    assert [*memory.exact] == ["0", "1.0", "1.1"] and not process.notes
    ordinary, exact = both(tmp_path, memory)
    assert 0 < np.abs(ordinary - exact).max() < 1e-5
    ordinary, exact = both(tmp_path, process.calls[-1])
    assert abs(float(exact) - said[0]["exact"]["number"]) < 1e-15 < abs(float(ordinary) - float(exact))
    assert process.backward[0].exact.keys() == process.backward[0].gradients.keys()


def test_settings_are_text(seen: tuple[dict[str, Any], Process]) -> None:
    settings = {call.module: call.settings for call in seen[1].calls}
    assert settings["stem.0"] | {"kernel_size": "[3]", "padding": "[1]", "padding_mode": "zeros"} == settings["stem.0"]
    assert settings["stem.1"]["eps"] == "1e-05" and settings["drop"] == {"p": "0.5", "inplace": "False"}
    assert not {"training", "_parameters"} & settings["head"].keys()


def test_other_ways_to_train(tmp_path: Path) -> None:
    """Each scenario takes three steps; the first of each is asked for."""
    scenarios = ["accumulated", "checkpointed", "late"]
    said, process = trained(tmp_path, "1,4,7", *scenarios)
    assert [line.gradients for line in process.backward] == [
        {name.replace("0.", f"{place}.", 1): code for name, code in said[3 * place].items()} for place in range(3)
    ]
    assert all(line.exact.keys() == line.gradients.keys() for line in process.backward)
    types = {step: [call.type for call in process.calls if call.step == step] for step in (1, 4, 7)}
    one = ["Sequential", "Linear", "Tanh", "Dropout", "Linear", "loss"]
    assert types == {1: one * 2, 4: one, 7: one}  # checkpointed layers are computed twice
    assert not any("torch.func" in note for note in process.notes)
    paths = [call.module for call in process.calls]
    assert paths[:6] == ["", "0", "1", "2", "3", "loss"] and paths[12:18] == [
        "Sequential",
        *["1:0", "1:1", "1:2", "1:3"],
        "loss",
    ]


def test_an_optimizer_with_the_address_of_an_earlier_one_has_its_own_number(tmp_path: Path) -> None:
    """Once PyTorch's compiler is imported, as `checkpoint` does it, the calls' hook comes before the optimizers' one."""
    said, process = trained(tmp_path, "4,5", "checkpointed", "one_address")
    assert [line.gradients for line in process.backward] == [
        {name.replace("0.", f"{place}.", 1): code for name, code in said[2 + place].items()} for place in (1, 2)
    ]


def test_updates_by_hand_end_with_the_next_pass(tmp_path: Path) -> None:
    said, process = trained(tmp_path, "1,3", "by_hand")
    assert [line.step for line in process.backward] == [1, 3]
    assert [{*line.gradients.values()} for line in process.backward] == [{*said[0].values()}, {*said[2].values()}]


@pytest.mark.slow
def test_a_compiled_model_runs_as_it_is_written(tmp_path: Path) -> None:
    said, process = trained(tmp_path, "1", "compiled")
    assert [call.module for call in process.calls] == ["", "0", "1", "2", "3", "loss"]
    assert process.backward[0].gradients == said[0]


def test_two_optimizers_have_gradients_of_their_own(tmp_path: Path) -> None:
    _, process = trained(tmp_path, "1", "two_models")
    assert [[*line.gradients] for line in process.backward] == [["0.weight", "0.bias"], ["1.weight", "1.bias"]]
    assert [call.module for call in process.calls] == ["", "1:", "loss"]


def test_after_what_has_no_float64_form_nothing_is_exact(tmp_path: Path) -> None:
    _, process = trained(tmp_path, "1", "without_doubles")
    assert [bool(call.exact) for call in process.calls] == [True, True, True, True, False, False]
    assert not process.backward[0].exact and any("own.halved" in note for note in process.notes)


def test_without_the_option_no_call_is_written(tmp_path: Path) -> None:
    ended(start([interpreter("pytorch"), PROGRAM, "accumulated"], tmp_path))
    (written,) = lines(tmp_path).values()
    assert not {"call", "backward"} & {line["kind"] for line in written} and notes(written) == []
