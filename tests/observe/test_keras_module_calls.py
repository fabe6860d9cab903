"""Calls of Keras' layers on TensorFlow in the steps that are asked for, beside copies of the model in float32 and float64."""

import json
from typing import Any

import pytest

from repro.record.lines import Process, processes
from support.observed import SCRIPTS, ended, interpreter, start

PROGRAM = str(SCRIPTS / "keras_module_calls.py")
SCENARIOS = ["fit", "compiled", "eager"]  # of three steps each
PATHS = ["", "stem", "stem/conv", "stem/norm", "pair", "drop", "cell", "head"]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Any], list[Any], Process]:
    """What the program says without the observer and with it, and the lines of its process."""
    folder = tmp_path_factory.mktemp("keras")
    command = [interpreter("tensorflow"), PROGRAM, *SCENARIOS]
    beside = start(command, None)
    printed = ended(start(command, folder, REPRO_OBSERVE_MODULES="1,4,7", REPRO_OBSERVE_KEEP="1"))
    (process,) = processes(folder)
    assert not process.unseen
    alone, watched = ([json.loads(line) for line in text.splitlines()] for text in (ended(beside), printed))
    return alone, watched, process


@pytest.mark.parametrize("index", range(3), ids=SCENARIOS)
def test_each_call_has_what_a_copy_of_the_model_gives(
    index: int, results: tuple[list[Any], list[Any], Process]
) -> None:
    said, _, process = results
    ordinary, exact = said[index][0]["float32"], said[index][0]["float64"]
    prefix = f"{index}:" if index else ""
    calls = [call for call in process.calls if call.step == 1 + 3 * index]
    assert [call.number for call in calls] == [*range(1, len(calls) + 1)]
    *layers, loss = [call for call in calls if "gru_cell" not in call.module]
    assert [call.module for call in layers] == [f"{prefix}{path}" for path in PATHS]
    for path, call in zip(PATHS, layers, strict=True):
        assert call.inputs["0"] == ordinary["inputs"][path], path
        assert call.outputs == ordinary["outputs"][path] and call.exact == exact["outputs"][path], path
        assert call.training is True
    assert (
        loss.type == "loss" and loss.outputs == ordinary["outputs"]["loss"] and loss.exact == exact["outputs"]["loss"]
    )


@pytest.mark.parametrize("index", range(3), ids=SCENARIOS)
def test_gradients_are_those_before_clipping(index: int, results: tuple[list[Any], list[Any], Process]) -> None:
    said, _, process = results
    (line,) = [line for line in process.backward if line.step == 1 + 3 * index]
    assert line.gradients == said[index][0]["float32"]["gradients"]
    assert line.exact == said[index][0]["float64"]["gradients"]
    assert line.gradients.keys() == process.steps[1 + 3 * index]["gradients"].keys()


def test_weights_and_settings_of_a_layer(results: tuple[list[Any], list[Any], Process]) -> None:
    process = results[2]
    calls = {call.module: call for call in process.calls if call.step == 1}
    conv, norm = calls["stem/conv"], calls["stem/norm"]
    started = process.steps[0]["initial weights"]
    assert conv.weights == {name: started[f"0.net/stem/conv/{name}"] for name in ("kernel", "bias")}
    assert [*norm.buffers] == ["moving_mean", "moving_variance"] and [*norm.weights] == ["gamma", "beta"]
    settings = conv.settings
    assert settings | {"filters": "6", "kernel_size": "[3]", "activation": "linear", "dtype": "float32"} == settings
    assert calls["pair"].inputs.keys() == {"0", "scale"} and [*calls["pair"].outputs] == ["0", "1"]


def test_what_runs_outside_of_graphs_has_the_bits_that_it_has_alone(
    results: tuple[list[Any], list[Any], Process],
) -> None:
    alone, watched, _ = results
    assert alone[SCENARIOS.index("eager")] == watched[SCENARIOS.index("eager")]
