"""Functions under portable numerics over all of float32, beside float64; and shares of softmax."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from programs.mode_tails import ROW
from reference import activations, functions
from repro.frameworks import FRAMEWORKS
from support.programs import program

pytestmark = pytest.mark.deep

VALUES: dict[str, Callable[..., np.ndarray]] = {
    "sigmoid": functions.sigmoid,
    "silu": activations.silu,
    "gelu": activations.gelu,
    "gelu_tanh": lambda x: activations.gelu(x, tanh=True),
    "tanh": functions.tanh,
    "mish": activations.mish,
    "cbrt": np.cbrt,
}
SLOPES: dict[str, Callable[..., np.ndarray]] = {
    "silu": lambda x: activations.silu_backward(np.ones_like(x), x),
    "gelu": lambda x: activations.gelu_backward(np.ones_like(x), x),
    "gelu_tanh": lambda x: activations.gelu_backward(np.ones_like(x), x, tanh=True),
    "mish": lambda x: activations.mish_backward(np.ones_like(x), x),
}
"""Gradients of arguments; those of sigmoid and tanh are functions of the result."""
ZEROS = [-1.2784645, -0.75179285, -0.7524614, -1.192433]
"""Points near which gradients of these cancel."""
ULPS = 2
SMALLEST = 2.0**-126
FLUSHED = 2.0**-118
"""TensorFlow's own products and XLA may take numbers below SMALLEST for 0; silu(-100) is 100 times such a number."""


def arguments() -> np.ndarray:
    """float32 of both signs and all magnitudes, more of them where functions end, and neighbors of ZEROS."""
    random = np.random.default_rng(0)
    sizes = np.ldexp(random.uniform(1, 2, (6, 276)), np.arange(-149, 127)).ravel()
    near = np.concatenate([np.linspace(0, 130, 2000), sizes, [0.0, 3.4e38, np.inf]]).astype(np.float32)
    zeros = np.array(ZEROS, np.float32).view(np.int32)[:, None] + np.arange(-40, 41)
    x = np.concatenate([near, -near, zeros.astype(np.int32).view(np.float32).ravel()])
    return np.append(x, np.float32(np.nan))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("arguments") / "x.npy"
    np.save(path, arguments())
    return path


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_functions_are_right_to_two_units_in_the_last_place(framework: str, path: Path) -> None:
    content = json.loads(program(framework, "mode_tails.py", framework, str(path)))
    x = arguments().astype(float)
    with np.errstate(all="ignore"):
        for kind, exact in (("values", VALUES), ("slopes", SLOPES)):
            results = {name: bits for name, bits in content[kind].items() if name in exact}
            assert results or framework != "pytorch"
            for name, bits in results.items():
                wrong = different(exact[name](x), as_floats(bits), x, subnormals=framework == "pytorch")
                assert not wrong.any(), f"{name}, {kind}: of {x[wrong][:5]} {as_floats(bits)[wrong][:5]}"
    powers = np.exp(np.array(ROW))
    assert ulps(powers / powers.sum(), as_floats(content["shares"])).max() <= ULPS


def as_floats(bits: Any) -> np.ndarray:
    return np.array(bits, np.int32).view(np.float32).astype(float)


def different(exact: np.ndarray, y: np.ndarray, x: np.ndarray, subnormals: bool) -> np.ndarray:
    """True where a result is farther from the exact one than ULPS."""
    same = np.isnan(exact) & np.isnan(y) | (ulps(exact, y) <= ULPS)
    as_zero = ((np.abs(exact) < FLUSHED) | (np.abs(x) < SMALLEST)) & (y == 0)
    return ~(same if subnormals else same | as_zero)


def ulps(exact: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The distance in units in the last place of the exact result, of float32; 0 where both are one infinity."""
    with np.errstate(all="ignore"):
        exponent = np.clip(np.frexp(exact)[1] - 1, -126, 127)
        nearest = exact.astype(np.float32)
        return np.where(nearest == y, 0, np.abs(y - exact) / np.ldexp(1.0, exponent - 23))
