"""TensorFlow's library: the bits of JAX's, and refusals."""

import numpy as np
import pytest

from programs import library_cases as cases
from support.libraries import assert_same, library, lines
from support.runs import python, some

pytestmark = pytest.mark.deep

MODES = ("eager", "graph", "compiled")
WITHOUT_THE_SUITE = """
import sys
sys.modules |= dict.fromkeys(("hydra", "omegaconf", "mnist_tensorflow"))
from repro.portable.tensorflow import functional, layers, optim
"""
REFUSED = {
    "float16": "relu: x is float16",
    "bfloat16": "linear: kernel is bfloat16",
    "float64": "layer_norm: x is float64",
    "empty": "relu: x of shape [0, 5, 6]",
    "unknown size": "relu: x has the shape (None, 6)",
    "unknown size in fit": "conv2d: x has the shape (None, 9, 9, 3)",
    "shapes": "linear: shapes [4, 5, 6] and [5, 2]",
    "kernel": "conv2d: the kernel reaches over 9 of 7",
    "padding": "max_pool2d: padding=2",
    "index": "embedding: index has numbers from 5 to 5",
    "labels": "cross_entropy: labels has numbers from -1",
    "mask": "mask is float64 and must be bool",
    "rate": "dropout: rate=1.0",
    "one sample": "batch_norm: a variance",
    "layer's dtype": "Dense: dtype=bfloat16",
    "layer's axes": "LayerNormalization: axis=[1, 2]",
    "regularizer": "Dense: kernel_regularizer=",
    "activation": "Dense: activation=elu",
    "probabilities": "SparseCategoricalCrossentropy: from_logits=False",
    "sample weights": "SparseCategoricalCrossentropy: sample_weight",
    "averages": "SGD: use_ema=True",
    "one name": "SGD: global_clipnorm needs weights of different paths",
    "labels of 0.7": "cross_entropy: labels is float64 and must be of integers",
    "copies": "fan_out: copies=0 must be an integer of at least 1",
    "limit": "clip_by_global_norm: limit=nan must be a number of at least 0",
    "rate of NaN": "SGD: learning_rate=nan must be a number of at least 0",
    "rate below 0": "Adam: learning_rate=-1.0 must be a number of at least 0",
    "rate since": "SGD: learning_rate=-1.0 must be a number of at least 0",
    "momentum": "SGD: momentum=nan must be at least 0 and below 1",
    "beta of NaN": "Adam: beta_2=nan must be from 0 to 0.99999",
    "beta of 1": "AdamW: beta_2=1.0 must be from 0 to 0.99999",
    "beta below 0": "Adam: beta_1=-1.0 must be from 0 to 0.99999",
    "decay": "AdamW: weight_decay=-1.0 must be a number of at least 0",
    "rho": "Adadelta: rho=1.5 must be at least 0 and below 1",
    "schedule": "SGD: learning_rate=CosineDecay has no portable form",
    "schedule since": "Adam: learning_rate=CosineDecay has no portable form",
    "clipping since": "Adam: clipnorm=1.0 is not supported",
    "beta since": "Adam: beta_2=nan must be from 0 to 0.99999",
    "constraint of a weight": "Adam: a constraint of variable",
    "rank since": "Dense: lora_rank=2 is not supported",
    "regularizer since": "Dense: kernel_regularizer=",
    "regularizer of a weight": "Dense: a regularizer or constraint of kernel is not supported",
    "quantized": "Dense: quantization=int8 is not supported",
}
WAYS = ("graph", "compiled", "of a function", "forward mode", "copies", "clipped")
SECOND = [f"second derivative of {name}" for name in cases.CASES] + [f"second derivative, {name}" for name in WAYS]
REFUSED |= dict.fromkeys(SECOND, "gradient: second derivatives have no portable form")
TAKEN = ("portable schedule", "two tapes", "in the tape", "loss and gradient", "gradient as a constant")
OUTSIDE = ("labels {}, graph", "labels {}, compiled", "index {}, compiled")


@pytest.fixture(scope="module", autouse=True)
def computed_once() -> None:
    """All tests here look at what one process of the library computed."""
    library("jax")
    library("tensorflow")


@pytest.mark.parametrize("mode", some(MODES, "eager"))
@pytest.mark.parametrize("case", cases.CASES)
def test_function_and_its_gradients_have_the_bits_of_jax(case: str, mode: str) -> None:
    assert_same(library("tensorflow", *([] if mode == "eager" else [mode])), mode, library("jax"), case)


@pytest.mark.parametrize("mode", [*MODES, "resumed"])
@pytest.mark.parametrize("network", ["cnn", "block"])
def test_training_has_the_bits_of_jax(network: str, mode: str) -> None:
    assert_same(library("tensorflow"), mode, library("jax"), network)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("optimizer", ["sgd", "adam", "adamw", "adadelta"])
def test_optimizer_has_the_bits_of_jax(optimizer: str, mode: str) -> None:
    assert_same(library("tensorflow"), mode, library("jax"), optimizer)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_one_line(name: str) -> None:
    line = lines("tensorflow")[name]
    assert line.startswith("portable numerics: ") and REFUSED[name] in line and "\n" not in line


@pytest.mark.parametrize("name", TAKEN)
def test_what_has_a_portable_form_is_taken(name: str) -> None:
    assert lines("tensorflow")[name] == ""


@pytest.mark.parametrize("where", ["below", "above", "far above"])
@pytest.mark.parametrize("case", OUTSIDE)
def test_graphs_make_nan_of_an_index_out_of_range(case: str, where: str) -> None:
    computed = library("tensorflow")
    for each in ("loss", "gradient"):
        assert np.isnan(computed[f"outside/{case.format(where)}/{each}"]).all()


def test_library_needs_nothing_of_the_suite() -> None:
    python("tensorflow", WITHOUT_THE_SUITE)
