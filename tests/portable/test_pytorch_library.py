"""PyTorch's library: functions, modules, optimizers, conversion."""

import json
from typing import Any

import pytest

from support.programs import program


@pytest.fixture(scope="module")
def library() -> dict[str, Any]:
    return json.loads(program("pytorch", "pytorch_library.py"))


@pytest.fixture(scope="module")
def trained() -> dict[str, Any]:
    return json.loads(program("pytorch", "pytorch_training.py"))


def test_modules_are_the_definitions_and_close_to_pytorchs_own(library: dict[str, Any]) -> None:
    assert library["modules"] == {"differ": [], "far": [], "modules": 18}
    assert library["functions"] == {"differ": [], "far": []}


def test_dropout_follows_from_seed_stream_and_step(library: dict[str, Any]) -> None:
    kept = library["dropouts"].pop("kept")
    assert 0.7 < kept < 0.8
    assert library["dropouts"] == {
        "of the definition": True,
        "same at each call": False,
        "same in each stream": False,
        "whole channels": True,
        "evaluated": True,
        "step": 2,
    }


def test_memory_format_is_the_inputs(library: dict[str, Any]) -> None:
    assert library["memory"] == [True] * 4


def test_gradients_of_copies_are_added_in_their_order(library: dict[str, Any]) -> None:
    assert library["copies"] == [True, False]


@pytest.mark.parametrize("model", ["cnn", "transformer"])
def test_training_is_the_same_again_with_other_threads_and_resumed(trained: dict[str, Any], model: str) -> None:
    one, two, again, resumed = trained["training"][model]
    assert one == two == again == resumed


@pytest.mark.parametrize(
    ("model", "counts", "own"),
    [
        ("cnn", ["10.step", "7.step"], []),
        ("transformer", ["blocks.0.dense.3.step", "blocks.1.dense.3.step"], ["__main__"]),
    ],
)
def test_convert_keeps_all_but_the_arithmetic(
    trained: dict[str, Any], model: str, counts: list[str], own: list[str]
) -> None:
    containers = ["torch.nn.modules.container", *(["torch.nn.modules.flatten"] if model == "cnn" else [])]
    assert trained["converting"][model] == {
        "more": counts,
        "same": True,
        "order": True,
        "close": True,
        "mode": [False, True],
        "shared": True,
        "back": "<All keys matched successfully>",
        "original": [*own, "torch"],
        "kept": [*own, "repro.portable.pytorch.modules", *containers],
    }


def test_optimizers_step_as_defined_however_weights_are_put_together(trained: dict[str, Any]) -> None:
    assert len(trained["stepping"]) == 7 and all(all(each) for each in trained["stepping"].values()), trained[
        "stepping"
    ]


def test_what_has_no_portable_form_is_refused_in_one_line(trained: dict[str, Any]) -> None:
    expected = [
        "conv2d: weight is float16; convert it to float32",
        "conv2d: shapes [2, 3, 4, 4] and [2, 2, 1, 1] do not fit one another",
        "conv2d: the kernel reaches over 5 of 4; make it smaller, or the padding larger",
        "linear: shapes [2, 3] and [4, 5] do not fit one another",
        "cross_entropy: input of shape [0, 3] holds no numbers; give one sample at least",
        "cross_entropy: target has numbers from -100 to 0; they must be from 0 to 2",
        "embedding: input has numbers from 3 to 3; they must be from 0 to 2",
        "mse_loss: shapes [2, 3] and [3] do not fit one another",
        "add: shapes [2, 3] and [3] do not fit one another",
        "scaled_dot_product_attention: attn_mask is float32 and must be bool",
        "scaled_dot_product_attention: dropout_p=0.1 has no portable form; drop out of what comes before or after",
        "scaled_dot_product_attention: is_causal with 3 queries and 5 keys is ambiguous; give a mask",
        "adaptive_avg_pool2d: output_size=2 has no portable form; use 1, or avg_pool2d",
        "batch_norm: a variance in training needs more than one value per channel; make the batch larger",
        "dropout: p=1.0 must be at least 0 and below 1",
        "Conv2d: padding_mode=reflect has no portable form; use zeros",
        "BatchNorm2d: momentum=None has no portable form; use a number",
        "CrossEntropyLoss: reduction=sum has no portable form; use mean",
        "Dropout: no stream number; call number_dropouts(model, seed) when the model is built",
        "SGD: fused=True has no portable form; leave it out",
        "Adam: betas=(0.9, 1.0) must be at least 0 and below 1",
        "AdamW: a weight [2] is float64; convert it to float32",
        "no portable form of 0 (LSTM), 1 (Own with parameters of its own), 2 (Changed), 3 (MaxPool2d with "
        "ceil_mode=True), 4 (Linear with hooks), 7 (Dropout with p=1.0); replace them, or derive a module that calls "
        "none but portable functions from repro.portable.pytorch.Portable",
        "0.weight is float64; convert the model to float32, with model.float()",
    ]
    assert trained["refusals"] == [f"portable numerics: {line}" for line in expected]


def test_nothing_of_the_suite_is_imported(library: dict[str, Any]) -> None:
    assert library["imports"] == []
