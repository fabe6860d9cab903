"""Minimal filtering, by which JAX and TensorFlow convolve on a CPU, and find the gradients, against the definition."""

from pathlib import Path

import numpy as np
import pytest

from repro.native.filtering import fits
from support.runs import python

FILTERS = {
    "jax": "import jax; from repro.native.jax.filtering import *; compiled = jax.jit",
    "tensorflow": """
import tensorflow as tf
from repro.native.tensorflow.filtering import *
compiled = lambda function: tf.function(function, jit_compile=True)""",
}

SHAPES = [(5, 5, 8, 8), (1, 5, 3, 4), (3, 3, 2, 12), (5, 5, 1, 20), (2, 2, 3, 8), (4, 4, 4, 4)]

# What filtering makes of random arrays of each shape, in an archive, beside these arrays.
FILTERED = """
import sys
import numpy as np
for name in sys.argv[2:]:
    height, width, rows, columns = map(int, name.split("x"))
    draw = np.random.default_rng(0)
    shapes = (3, rows + height - 1, columns + width - 1, 6), (height, width, 3, 5), (5, rows, columns, 6)
    x, kernel, gradient = given = [draw.standard_normal(shape).astype(np.float32) for shape in shapes]
    found = (
        compiled(correlate)(x, kernel), compiled(correlate_with)(x, gradient), compiled(spread)(gradient, kernel)
    )
    np.savez(f"{sys.argv[1]}/{name}.npz", *given, *map(np.asarray, found))
"""


@pytest.fixture(scope="module", params=list(FILTERS))
def filtered(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a framework's archives, all of them made by one process."""
    folder = tmp_path_factory.mktemp(request.param)
    python(request.param, FILTERS[request.param] + FILTERED, str(folder), *map(named, SHAPES))
    return folder


def named(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def error(found: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference, in units of the largest value."""
    assert found.dtype == np.float32
    return float(abs(found - expected).max() / abs(expected).max())


@pytest.mark.parametrize("shape", SHAPES)
def test_it_is_convolution_and_its_gradients(filtered: Path, shape: tuple[int, ...]) -> None:
    with np.load(filtered / f"{named(shape)}.npz") as arrays:
        x, kernel, gradient, result, kernel_gradient, x_gradient = arrays.values()
    height, width, rows, columns = shape
    x, kernel, gradient = (array.astype(np.float64) for array in (x, kernel, gradient))
    expected, along, back = np.zeros(result.shape), np.zeros(kernel.shape), np.zeros(x.shape)
    for i, j in np.ndindex(height, width):
        here = slice(None), slice(i, i + rows), slice(j, j + columns)
        expected += np.einsum("crsb,co->orsb", x[here], kernel[i, j])
        along[i, j] = np.einsum("crsb,orsb->co", x[here], gradient)
        back[here] += np.einsum("orsb,co->crsb", gradient, kernel[i, j])
    assert error(result, expected) < 1e-6
    assert error(kernel_gradient, along) < 3e-6
    assert error(x_gradient, back) < 3e-6


# For each width, how many pairs of results have equal patches, and how many of these results differ.
PAIRS = """
import numpy as np
draw = np.random.default_rng(0)
for width in (2, 3, 4, 5):
    x = draw.standard_normal((3, 9, 7 + width, 64)).astype(np.float32)
    kernel = draw.standard_normal((5, width, 3, 10)).astype(np.float32)
    for pair in (0, 4, 6):
        x[:, :, pair : pair + width + 1] = x[:, :, pair, None]
    y = np.asarray(compiled(correlate)(x, kernel))
    patches = {pair: (x[:, :, pair : pair + width], x[:, :, pair + 1 : pair + width + 1]) for pair in (0, 2, 4, 6)}
    equal = [pair for pair, (left, right) in patches.items() if (left == right).all()]
    print(len(equal), sum(int((y[:, :, pair] != y[:, :, pair + 1]).sum()) for pair in equal))
"""


@pytest.mark.parametrize("framework", list(FILTERS))
def test_equal_patches_in_a_pair_give_equal_results(framework: str) -> None:
    lines = python(framework, FILTERS[framework] + PAIRS).splitlines()
    assert len(lines) == 4
    for line in lines:
        equal, differ = map(int, line.split())
        assert equal > 0
        assert differ == 0


def test_it_leaves_to_the_definition_what_it_cannot_do_or_does_no_faster() -> None:
    cases = ((10, 5, 8), (10, 5, 10), (1, 5, 24), (32, 3, 24), (10, 6, 8), (10, 4, 4), (10, 1, 8))
    assert [fits(*case) for case in cases] == [True, False, False, True, False, True, False]
