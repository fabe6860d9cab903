"""Minimal filtering, by which JAX finds a convolution's gradients on a CPU, against those of XLA's own convolution."""

import pytest
from conftest import python

# The largest difference of each gradient from that in float64, in units of the largest value.
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
_, back = jax.vjp(convolve, x, kernel)
x, kernel, gradient32 = (array.astype(np.float32) for array in (x, kernel, gradient))
assert filtering.fits(x, kernel)
found = filtering.spread(gradient32, kernel), filtering.correlate_with(x, gradient32)
for array, expected in zip(found, back(gradient), strict=True):
    assert array.dtype == np.float32
    print(float(abs(array - expected).max() / abs(expected).max()))
"""


@pytest.mark.parametrize("shape", [(5, 5, 8, 8), (1, 5, 3, 4), (3, 3, 2, 12), (5, 5, 1, 20)])
def test_its_gradients_are_the_convolutions(shape: tuple[int, ...]) -> None:
    differences = [float(line) for line in python("jax", DIFFERENCES, *map(str, shape)).split()]
    assert len(differences) == 2
    assert max(differences) < 3e-6


FITS = """
import numpy as np
from mnist_jax_filtering import fits
for channels, width, columns in ((10, 5, 8), (10, 5, 10), (1, 5, 24), (32, 3, 24), (10, 6, 8), (10, 4, 4)):
    print(fits(np.zeros((channels, 9, columns + width - 1, 1)), np.zeros((5, width, channels, 1))))
"""


def test_it_leaves_to_the_definition_what_it_cannot_do_or_does_no_faster() -> None:
    assert python("jax", FITS).split() == ["True", "False", "False", "True", "False", "True"]
