"""Minimal filtering, by which JAX convolves on a CPU, and finds the gradients, against XLA's own convolution."""

import pytest
from conftest import python

# The largest difference of the result, and of each gradient, from that in float64, in units of the largest value.
DIFFERENCES = """
import sys
import jax
import numpy as np
jax.config.update("jax_enable_x64", True)
import mnist_jax_filtering as filtering
from mnist_jax_layers import convolve
height, width, rows, columns = map(int, sys.argv[1:])
draw = np.random.default_rng(0)
x, kernel, gradient = (
    draw.standard_normal(shape)
    for shape in ((3, rows + height - 1, columns + width - 1, 6), (height, width, 3, 5), (5, rows, columns, 6))
)
result, back = jax.vjp(convolve, x, kernel)
x, kernel, gradient32 = (array.astype(np.float32) for array in (x, kernel, gradient))
assert filtering.fits(x, kernel)
found = (
    filtering.correlate(x, kernel), filtering.spread(gradient32, kernel), filtering.correlate_with(x, gradient32)
)
for array, expected in zip(found, (result, *back(gradient)), strict=True):
    assert array.dtype == np.float32
    print(float(abs(array - expected).max() / abs(expected).max()))
"""


@pytest.mark.parametrize(
    "shape", [(5, 5, 8, 8), (1, 5, 3, 4), (3, 3, 2, 12), (5, 5, 1, 20), (2, 2, 3, 8), (4, 4, 4, 4)]
)
def test_it_is_convolution_and_its_gradients(shape: tuple[int, ...]) -> None:
    result, *gradients = map(float, python("jax", DIFFERENCES, *map(str, shape)).split())
    assert result < 1e-6
    assert len(gradients) == 2
    assert max(gradients) < 3e-6


# For each width, how many pairs of results have equal patches, and how many of these results differ.
PAIRS = """
import jax
import numpy as np
import mnist_jax_filtering as filtering
draw = np.random.default_rng(0)
for width in (2, 3, 4, 5):
    x = draw.standard_normal((3, 9, 7 + width, 64)).astype(np.float32)
    kernel = draw.standard_normal((5, width, 3, 10)).astype(np.float32)
    for pair in (0, 4, 6):
        x[:, :, pair : pair + width + 1] = x[:, :, pair, None]
    y = np.asarray(jax.jit(filtering.correlate)(x, kernel))
    patches = {pair: (x[:, :, pair : pair + width], x[:, :, pair + 1 : pair + width + 1]) for pair in (0, 2, 4, 6)}
    equal = [pair for pair, (left, right) in patches.items() if (left == right).all()]
    print(len(equal), sum(int((y[:, :, pair] != y[:, :, pair + 1]).sum()) for pair in equal))
"""


def test_equal_patches_in_a_pair_give_equal_results() -> None:
    lines = python("jax", PAIRS).splitlines()
    assert len(lines) == 4
    for line in lines:
        equal, differ = map(int, line.split())
        assert equal > 0
        assert differ == 0


FITS = """
import numpy as np
from mnist_jax_filtering import fits
for channels, width, columns in ((10, 5, 8), (10, 5, 10), (1, 5, 24), (32, 3, 24), (10, 6, 8), (10, 4, 4), (10, 1, 8)):
    print(fits(np.zeros((channels, 9, columns + width - 1, 1)), np.zeros((5, width, channels, 1))))
"""


def test_it_leaves_to_the_definition_what_it_cannot_do_or_does_no_faster() -> None:
    assert python("jax", FITS).split() == ["True", "False", "False", "True", "False", "True", "False"]
