"""Arguments of the libraries: what is wrong is one line, before anything is computed."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from repro.errors import UsageError
from repro.portable import arguments
from repro.portable.definitions import optimizers
from repro.portable.library import functional
from repro.portable.numbers import tables

NAN = float("nan")
IMAGES, KERNEL, X, LOGITS = (np.ones(shape, np.float32) for shape in ((2, 5, 6, 4), (3, 3, 4, 8), (2, 3, 4), (3, 5)))
NUMBER, LABELS, INDEX = np.float32(1), np.arange(3), np.array([0, 2])
FRAMEWORK: Any = SimpleNamespace(
    xp=SimpleNamespace(
        transpose=lambda x: x.T,
        permute=np.transpose,
        pad=lambda x, *_: x,
        integer=lambda x: x,
        reshape=np.reshape,
        ranks=SimpleNamespace(size=1),
    ),
    apply=lambda *_, **__: (X, X, X),
    array=np.asarray,
    int64=np.int64,
    known=lambda _: True,
    constant=lambda x: x,
)
"""Computes nothing."""


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


WRONG: dict[str, tuple[str, tuple[Any, ...], dict[str, Any], str]] = {
    "linear of a number": ("linear", (NUMBER, ones(1, 1)), {}, "shapes [] and [1, 1] do not fit one another"),
    "linear, bias": ("linear", (X, ones(4, 3), ones(1)), {}, "bias must be [3], not [1]"),
    "padding": ("conv2d", (IMAGES, KERNEL), {"padding": "reflect"}, "padding='reflect' must be VALID, SAME"),
    "no padding": ("conv2d", (IMAGES, KERNEL), {"padding": None}, "padding=None must be an integer of at least 0"),
    "less padding": ("conv2d", (IMAGES, KERNEL), {"padding": -1}, "padding=-1 must be an integer of at least 0"),
    "half a stride": ("conv2d", (IMAGES, KERNEL), {"stride": 1.5}, "stride=1.5 must be an integer of at least 1"),
    "no stride": ("conv2d", (IMAGES, KERNEL), {"stride": 0}, "stride=0 must be an integer of at least 1"),
    "no dilation": (
        "conv2d",
        (IMAGES, KERNEL),
        {"dilation": (1, 0)},
        "dilation=(1, 0) must be an integer of at least 1",
    ),
    "no groups": ("conv2d", (IMAGES, KERNEL), {"groups": 0}, "groups=0 must be an integer of at least 1"),
    "conv2d, bias": ("conv2d", (IMAGES, KERNEL, ones(3)), {}, "bias must be [8], not [3]"),
    "no window": ("max_pool2d", (IMAGES, 0), {}, "kernel_size=0 must be an integer of at least 1"),
    "windows that stand": ("avg_pool2d", (IMAGES, 2, 0), {}, "stride=0 must be an integer of at least 1"),
    "embedding of rows": ("embedding", (INDEX, ones(3)), {}, "weight must be [N, C], not [3]"),
    "a mask of another size": (
        "scaled_dot_product_attention",
        (X, X, X, np.ones((3, 2), bool)),
        {},
        "mask of shape [3, 2] does not fit [2, 3, 3]",
    ),
    "attention of rows": ("scaled_dot_product_attention", (X[0, 0],) * 3, {}, "shapes [4] and [4] and [4] do not fit"),
    "scale": ("scaled_dot_product_attention", (X, X, X), {"scale": NAN}, "scale=nan must be a finite number"),
    "softmax of a number": ("softmax", (NUMBER,), {}, "x [] has too few dimensions; give 1 at least"),
    "rate": ("dropout", (X, NAN, 0, 0), {}, "rate=nan must be at least 0 and below 1"),
    "rate of nearly 1": ("dropout", (X, 0.99999999, 0, 0), {}, "rate=0.99999999 must be at least 0 and below 1"),
    "seed": ("dropout", (X, 0.5, -1, 0), {}, "seed=-1 must be an integer from 0 to 2^62 - 1"),
    "large seed": ("dropout", (X, 0.5, np.int64(2**62), 0), {}, "seed=4611686018427387904 must be an integer from 0"),
    "step": ("dropout", (X, 0.5, 0, 2**32), {}, "step=4294967296 must be an integer from 0 to 2^32 - 1"),
    "half a step": ("dropout", (X, 0.5, 0, 0.5), {}, "step=0.5 must be an integer from 0 to 2^32 - 1"),
    "half a step, array": ("dropout", (X, 0.5, 0, np.array(0.5)), {}, "step is float64 and must be of integers"),
    "steps": ("dropout", (X, 0.5, 0, INDEX), {}, "step must be [], not [2]"),
    "norm of a number": ("layer_norm", (NUMBER,), {}, "x [] has too few dimensions; give 1 at least"),
    "norm, scale": ("layer_norm", (X, ones(1)), {}, "scale must be [4], not [1]"),
    "norm, epsilon": ("layer_norm", (X,), {"epsilon": -1e-5}, "epsilon=-1e-05 must be a number of at least 0"),
    "root, epsilon": ("rms_norm", (X,), {"epsilon": NAN}, "epsilon=nan must be a number of at least 0"),
    "no group": ("group_norm", (X, 0), {}, "groups=0 must be an integer of at least 1"),
    "groups": ("group_norm", (X, 3), {}, "3 groups of shape [2, 3, 4] do not fit"),
    "mean": ("batch_norm", (X, ones(1), ones(4)), {}, "mean must be [4], not [1]"),
    "momentum": ("batch_norm", (X, ones(4), ones(4)), {"momentum": NAN}, "momentum=nan must be from 0 to 1"),
    "batch of a row": ("batch_norm", (X[0, 0], ones(4), ones(4)), {}, "x [4] has too few dimensions; give 2 at least"),
    "odd positions": ("rotary", (ones(2, 3),), {}, "x must be [..., T, D] with an even D, not [2, 3]"),
    "base": ("rotary", (X,), {"base": 0.0}, "base=0.0 must be a number of at least 1"),
    "add": ("add", (X, ones(4)), {}, "shapes [2, 3, 4] and [4] do not fit one another"),
    "logits of a sample": (
        "cross_entropy",
        (ones(5), LABELS),
        {},
        "logits [5] has too few dimensions; give 2 at least",
    ),
    "labels": ("cross_entropy", (LOGITS, LABELS[:2]), {}, "shapes [3, 5] and [2] do not fit one another"),
    "labels of 0.7": ("cross_entropy", (LOGITS, ones(3)), {}, "labels is float32 and must be of integers"),
    "more smoothing": ("cross_entropy", (LOGITS, LABELS, 2.0), {}, "label_smoothing=2.0 must be from 0 to 1"),
    "less smoothing": ("cross_entropy", (LOGITS, LABELS, -1), {}, "label_smoothing=-1 must be from 0 to 1"),
    "smoothing of NaN": ("cross_entropy", (LOGITS, LABELS, NAN), {}, "label_smoothing=nan must be from 0 to 1"),
    "targets": ("mse", (X, X[0]), {}, "shapes [2, 3, 4] and [3, 4] do not fit one another"),
}


def line(call: Callable[[], object]) -> str:
    with pytest.raises(UsageError) as raised:
        call()
    return str(raised.value)


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_argument_is_one_line(case: str) -> None:
    name, given, options, why = WRONG[case]
    said = line(lambda: getattr(functional, name)(FRAMEWORK, *given, **options))
    assert said.startswith(f"portable numerics: {name}: {why}") and "\n" not in said


RIGHT: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "conv2d": ((IMAGES, ones(2, 3, 2, 8), ones(8)), {"padding": "same", "stride": (2, 1), "groups": 2}),
    "max_pool2d": ((IMAGES, (2, 3)), {"padding": 1}),
    "scaled_dot_product_attention": ((X, X, X, np.ones((1, 3), bool)), {"scale": -0.5}),
    "dropout": ((X, 0.0, np.int64(2**62 - 1), 2**32 - 1), {}),
    "cross_entropy": ((LOGITS, LABELS, 1), {}),
    "softmax": ((ones(3),), {}),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_argument_is_taken(name: str) -> None:
    given, options = RIGHT[name]
    assert getattr(functional, name)(FRAMEWORK, *given, **options) is not None


@pytest.mark.parametrize("value", [-1e-3, NAN, float("inf"), "0.1", None])
def test_a_rate_is_a_number_of_at_least_0(value: object) -> None:
    said = line(lambda: arguments.check_number("SGD", "lr", value))
    assert said == f"portable numerics: SGD: lr={value} must be a number of at least 0"


@pytest.mark.parametrize("betas", [(0.9, NAN), (0.9, 1.0), (-1.0, 0.9), (0.9, 1.5), (0.999999, 0.9)])
def test_a_table_of_adam_has_an_end(betas: tuple[float, float]) -> None:
    assert "must be from 0 to 0.99999" in line(lambda: tables.adam(*betas))


@pytest.mark.parametrize("betas", [(0.9, 0.999), (0.0, 0.0), (0.5, 0.95), tuple(map(tables.float32, (0.9, 0.9999)))])
def test_a_table_of_adam_is_made_by_repeated_multiplication(betas: tuple[float, float]) -> None:
    expected: list[tuple[float, float]] = []
    powers = (1.0, 1.0)
    while not expected or expected[-1] != (1.0, 1.0):
        powers = powers[0] * betas[0], powers[1] * betas[1]
        expected.append((1 / (1 - powers[0]), 1 / (1 - powers[1])))
    result = tables.adam(*betas)
    assert result.dtype == np.float64 and np.array_equal(result, np.array(expected).T)


def test_an_optimizer_of_the_trainers_without_a_portable_form_is_one_line() -> None:
    with pytest.raises(
        UsageError, match=r"params\.optimizer: rmsprop has no portable form; choose one of sgd, adam, ada"
    ):
        optimizers.of_trainer("rmsprop", 0.1, 0.9)
