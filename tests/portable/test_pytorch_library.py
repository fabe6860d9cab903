"""PyTorch's library: functions, modules, optimizers, conversion."""

import json
import re
from typing import Any

import pytest

from support.programs import program
from support.runs import PROGRAMS

pytestmark = pytest.mark.deep


@pytest.fixture(scope="module")
def library() -> dict[str, Any]:
    return json.loads(program("pytorch", "pytorch_library.py"))


@pytest.fixture(scope="module")
def refused() -> dict[str, Any]:
    return json.loads(program("pytorch", "pytorch_refusals.py"))


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
        "kept": [*own, "repro.portable.library.pytorch.modules", *containers],
    }


def test_optimizers_step_as_defined_however_weights_are_put_together(trained: dict[str, Any]) -> None:
    assert len(trained["stepping"]) == 7 and all(all(each) for each in trained["stepping"].values()), trained[
        "stepping"
    ]


def test_what_has_no_portable_form_is_refused_in_one_line(refused: dict[str, Any]) -> None:
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
        "Adam: betas=1.0 must be from 0 to 0.99999",
        "AdamW: a weight [2] is float64; convert it to float32",
        "no portable form of 0 (LSTM), 1 (Own with parameters of its own), 2 (Changed), 3 (MaxPool2d with "
        "ceil_mode=True), 4 (Linear with hooks), 7 (Dropout with p=1.0); replace them, or derive a module that calls "
        "none but portable functions from repro.portable.pytorch.Portable",
        "0.weight is float64; convert the model to float32, with model.float()",
        'conv2d: padding=\'SAME\' must be "valid", "same" with a stride of 1, or numbers',
        'conv2d: padding=\'same\' must be "valid", "same" with a stride of 1, or numbers',
        "conv2d: bias must be [2], not [1]",
        "max_pool2d: padding='same' must be an integer or a pair",
        "linear: shapes [] and [4, 1] do not fit one another",
        "layer_norm: weight must be [4, 4], not [4]",
        "group_norm: groups=0 must be an integer of at least 1",
        "batch_norm: running_var must be [3], not [1]",
        "softmax: dim=2 must be from -2 to 1, of input [2, 3]",
        "embedding: padding_idx=3 must be from -3 to 2",
        "cross_entropy: label_smoothing=2.0 must be from 0 to 1",
        "dropout: seed=-1 must be an integer from 0 to 2^62 - 1",
        "dropout: step=4294967296 must be an integer from 0 to 2^32 - 1",
        "scaled_dot_product_attention: attn_mask of shape [5, 4] does not fit [2, 5, 5]",
        "MultiheadAttention: key_padding_mask of shape [2, 4] does not fit [2, 5]",
    ]
    assert refused["refusals"] == [f"portable numerics: {line}" for line in expected]


def test_tensors_whose_memory_is_not_their_numbers_are_made_plain_or_refused(refused: dict[str, Any]) -> None:
    assert refused["memory"]["different"] == []
    assert refused["memory"]["same"] == [True] * 3
    assert {
        name: line.removeprefix("portable numerics: PyTorch: ") for name, line in refused["memory"]["lines"].items()
    } == {
        "fake": "a tensor is a FakeTensor, which is not plain memory; give a plain tensor of its numbers",
        "fake labels": "a tensor is a FakeTensor, which is not plain memory; give a plain tensor of its numbers",
        "in its mode": "FakeTensorMode cannot see portable functions; call them outside, or use torch.compile",
        "wrapper": "a tensor is a Wrapper, which is not plain memory; give a plain tensor of its numbers",
        "sparse": "a tensor is torch.sparse_coo; give a plain tensor of its numbers",
        "without memory": "a tensor [12, 12] has no memory of its own; give a plain tensor of its numbers",
        "make_fx": "ProxyTorchDispatchMode cannot see portable functions; call them outside, or use torch.compile",
        "jit": "torch.jit.trace cannot see portable functions; call them outside, or use torch.compile",
        "made something else": "an array has no memory of its own; call portable functions outside of such modes",
    }


def test_a_second_derivative_is_refused_of_every_function(refused: dict[str, Any]) -> None:
    assert refused["second"] == []


def test_optimizers_refuse_weights_that_share_memory_and_numbers_given_later(refused: dict[str, Any]) -> None:
    shared = "weights share memory, so that updates would be lost; give one of them, or copies"
    expected = {
        **dict.fromkeys(("twice", "in part", "columns", "of NumPy", "broadcast"), f"portable numerics: SGD: {shared}"),
        **dict.fromkeys(("apart", "columns apart", "transposed"), "nothing"),
        "later": f"portable numerics: Adam: {shared}",
        "betas": "portable numerics: Adam: betas=1.5 must be from 0 to 0.99999",
        "lr": "portable numerics: Adam: lr=nan must be a number of at least 0",
    }
    assert refused["weights"] == expected


def test_convert_refuses_modules_that_are_more_than_they_seem(refused: dict[str, Any]) -> None:
    results = {
        name: re.split(r"portable form of |; |portable numerics: ", line)[-2]
        for name, line in refused["converted"].items()
    }
    assert results == {
        "forward": "0 (Linear with a forward of the instance's own)",
        "container's hook": "the model (Sequential with hooks)",
        "backward hook": "0 (Linear with hooks)",
        "hook before": "the model (Sequential with hooks)",
        "weight's hook": "convert: 0.weight has hooks, which its copy would not have",
        "gradient's hook": "convert: 0.bias has hooks, which its copy would not have",
        "sequence": "0 (InTurn with a forward of its own)",
        "complex": "0.weight is complex64",
    }


EXACT = ("portable", "shapes", "sums", "masks", "places", "integers")
FOREIGN = {
    "softmax": "_softmax",
    "matmul": "mm",
    "norm": "linalg_vector_norm",
    "mean": "mean",
    "tanh": "tanh",
    "pow": "pow",
    "layer_norm": "native_layer_norm",
    "attention": "_scaled_dot_product_flash_attention_for_cpu",
    "alpha": "add",
    "third": "div",
    "scaled": "mul (whose gradient is a sum)",
    "expanded": "expand (whose gradient is a sum)",
    "rows": "index (whose gradient is a sum)",
    "dropout": "bernoulli",
    "noise": "randint",
}


def test_functions_that_a_forward_calls_are_refused_by_name_and_line(refused: dict[str, Any]) -> None:
    called = refused["called"]
    assert {name: called[name] for name in EXACT} == dict.fromkeys(EXACT, "")
    lines = (PROGRAMS / "pytorch_forwards.py").read_text().splitlines()
    for name, function in FOREIGN.items():
        what, _, place = called[name].rpartition(" at ")
        path, _, number = place.rpartition(":")
        assert what == function and path == str(PROGRAMS / "pytorch_forwards.py")
        assert lines[int(number) - 1].startswith(f'    "{name}": ')
    assert called["nested"] == 2 and called["inner"] == 1  # as many lines
    assert called["trusted"] == "nothing" and called["evaluated"] and called["modes"] == 0
    assert called["compiled"].endswith("call it once in training before it is compiled")


def test_a_forward_is_looked_at_once_in_each_mode(refused: dict[str, Any]) -> None:
    before, *after = refused["called"]["hooks"]
    assert before == 6 and after == [6, 6, 0] * 3


def test_nothing_of_the_suite_is_imported(library: dict[str, Any]) -> None:
    assert library["imports"] == []
