"""Calls of modules of Flax, Haiku and Equinox in the steps that are asked for, out of compiled programs."""

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from repro.record.arrays import array
from repro.record.lines import Process, processes
from repro.record.typed_lines import Backward, Call
from support.observed import SCRIPTS, ended, interpreter, start

PROGRAM = str(SCRIPTS / "jax_module_calls.py")
STEPS = 2  # of each scenario
SCENARIOS = ["linen", "remat", "eager", "nnx", "scanned", "eager_choice", "taught"]
NAMED = ["linen", "remat", "eager", "nnx"]  # those with three layers of chosen names
LAYERS = ["first", "second", "third"]


def trained(folder: Path, *scenarios: str) -> tuple[dict[str, Any], Process]:
    """What the program says of each scenario's first step, and the lines of its process."""
    steps = ",".join(str(1 + STEPS * place) for place in range(len(scenarios)))
    command = [interpreter("jax"), PROGRAM, *scenarios]
    said = ended(start(command, folder, REPRO_OBSERVE_MODULES=steps, REPRO_OBSERVE_KEEP="1"))
    (process,) = processes(folder)
    assert not process.unseen and len(process.steps) == STEPS * len(scenarios) + 1
    return {name: json.loads(line) for name, line in zip(scenarios, said.splitlines(), strict=True)}, process


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("flax")


@pytest.fixture(scope="module")
def flax(folder: Path) -> tuple[dict[str, Any], Process]:
    return trained(folder, *SCENARIOS)


def of(process: Process, place: int) -> tuple[list[Call], Backward]:
    """Calls and gradients of the first step of a scenario. Its second one is not asked for."""
    step = 1 + STEPS * place
    assert step + 1 not in {call.step for call in process.calls} | {line.step for line in process.backward}
    (backward,) = [line for line in process.backward if line.step == step]
    return [call for call in process.calls if call.step == step], backward


def check(said: Any, calls: list[Call], backward: Backward) -> None:
    """What is written is what the program has, and nothing of its evaluations."""
    *calls, loss = calls
    assert [call.number for call in calls] == [*range(1, len(calls) + 1)] and loss.number == len(calls) + 1
    assert loss.type == "loss" and loss.outputs == {"": said["loss"]}
    layers = [call for call in calls if call.weights]
    assert [call.module for call in layers] == LAYERS
    assert [call.outputs for call in layers] == [{"": said["outputs"][name]} for name in LAYERS]
    assert [call.weights for call in layers] == [said["params"][name] for name in LAYERS]
    assert layers[0].inputs == {"0": said["x"]} and all(not call.buffers for call in calls)
    gradients = {f"0.{name}.{own}": code for name in LAYERS for own, code in said["gradients"][name].items()}
    assert backward.gradients == gradients


def layer(folder: Path, call: Call, kernel: str) -> tuple[Any, ...]:
    """Input and weights in float64, and the output in float32 and in float64."""
    names = [call.weights[kernel], call.weights["b" if kernel == "w" else "bias"], call.outputs[""], call.exact[""]]
    w, b, single, exact = (array(folder / "kept", code) for code in names)
    assert w is not None and b is not None
    return w.astype("float64"), b.astype("float64"), single, exact


def check_exact(folder: Path, calls: list[Call], backward: Backward, kernel: str) -> None:
    """The copy in float64 is that of the whole network, and of its gradients."""
    layers = [call for call in calls if call.weights]
    x = array(folder / "kept", layers[0].inputs["0"])
    assert x is not None
    x = x.astype("float64")
    for call in layers:
        w, b, single, exact = layer(folder, call, kernel)
        result = np.maximum(x, 0) if call.module != "first" else x
        x = result @ (w.T if kernel == "weight" else w) + b
        assert exact.dtype == np.float64 and single.dtype == np.float32
        assert np.abs(exact - x).max() < 1e-14 and 0 < np.abs(exact - single).max() < 1e-5
    loss = array(folder / "kept", calls[-1].exact[""])
    assert loss is not None and abs(float(loss) - float((x * x).mean())) < 1e-14
    assert backward.exact.keys() == backward.gradients.keys()
    (name,) = [name for name in backward.exact if name.endswith((".third.b", ".third.bias"))]
    bias = array(folder / "kept", backward.exact[name])
    assert bias is not None and abs(float(bias[0]) - float(2 * x.mean())) < 1e-14


@pytest.mark.parametrize("scenario", NAMED)
def test_calls_of_flax_are_written_as_the_program_sees_them(flax: tuple[Any, Process], scenario: str) -> None:
    check(flax[0][scenario], *of(flax[1], SCENARIOS.index(scenario)))


@pytest.mark.parametrize("scenario", NAMED)
def test_the_copy_in_float64_is_exact(flax: tuple[Any, Process], folder: Path, scenario: str) -> None:
    check_exact(folder, *of(flax[1], SCENARIOS.index(scenario)), kernel="kernel")


def test_layers_in_a_loop_are_several_calls(flax: tuple[Any, Process]) -> None:
    """The calls of one place stand one after another."""
    calls, backward = of(flax[1], SCENARIOS.index("scanned"))
    assert [call.module for call in calls] == ["", *["layers"] * 3, *["layers.dense"] * 3, "loss"]
    outputs = [call.outputs["0"] for call in calls[1:4]]
    assert len({*outputs}) == 3 and calls[0].outputs == {"": outputs[-1]}
    assert [call.inputs["0"] for call in calls[2:4]] == outputs[:2]
    assert all(call.exact.keys() == call.outputs.keys() for call in calls)
    assert {*backward.gradients.values()} == {*flax[0]["scanned"]["gradients"]["params"]["layers"]["dense"].values()}


def test_a_loss_that_asks_for_a_number_has_no_copy(flax: tuple[Any, Process]) -> None:
    said, process = flax
    (loss,), backward = of(process, SCENARIOS.index("eager_choice"))
    assert loss.outputs == {"": said["eager_choice"]["loss"]} and not loss.exact
    assert [*backward.gradients.values()] == [said["eager_choice"]["gradients"]["w"]] and not backward.exact
    assert any("no copy in float64: TracerBoolConversionError" in note for note in process.notes)


def test_a_model_that_does_not_learn_has_paths_of_its_own(flax: tuple[Any, Process]) -> None:
    calls, _ = of(flax[1], SCENARIOS.index("taught"))
    assert [call.module for call in calls] == ["", "layers.0", "1:", "1:layers.0", "Distance", "loss"]
    assert all(call.exact for call in calls)


def test_settings_are_text(flax: tuple[Any, Process]) -> None:
    call = of(flax[1], 0)[0][1]
    assert (
        call.type == "Dense"
        and {"features": "6", "use_bias": "True", "param_dtype": "float32"}.items() <= call.settings.items()
    )


@pytest.mark.parametrize(("library", "kernel"), [("equinox", "weight"), ("haiku", "w")])
def test_other_libraries(tmp_path: Path, library: str, kernel: str) -> None:
    """Equinox' network is called for one row, within vmap."""
    python = interpreter("jax")
    if subprocess.run([python, "-c", f"import {library}"], capture_output=True, check=False).returncode:
        pytest.skip(f"no {library} in .venv/jax")
    said, process = trained(tmp_path, library)
    check(said[library], *of(process, 0))
    check_exact(tmp_path, *of(process, 0), kernel=kernel)
    assert process.calls[0].inputs["0"] == said[library]["x"]
