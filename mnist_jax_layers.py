"""The layers of mnist_jax.py, fast in a loop on the CPU, rounding and choosing as the twins do.

The batch is the last axis of images, [C, H, W, B]: XLA's loops on the CPU then run over whole vectors.
"""

from functools import partial

import jax
from flax import linen as nn
from jax import Array, lax
from jax import numpy as jnp

from repro.portable.jax import spread  # a product and sums, in the type that they are given


class Layer(nn.Module):
    """A layer's kernel, of this shape, and bias."""

    shape: tuple[int, ...]

    @nn.compact
    def __call__(self) -> tuple[Array, Array]:
        kernel = self.param("kernel", nn.initializers.zeros, self.shape)
        return kernel, self.param("bias", nn.initializers.zeros, self.shape[-1:])


def conv(x: Array, kernel: Array, bias: Array) -> Array:
    """Valid convolution with bias: [I, H, W, B], [h, w, I, O] and [O] -> [O, H - h + 1, W - w + 1, B]."""
    y = lax.platform_dependent(x, kernel, cpu=convolve_as_product, default=convolve)
    return y + bias[:, None, None, None]


def convolve(x: Array, kernel: Array) -> Array:
    """The convolution alone."""
    return lax.conv_general_dilated(x, kernel, (1, 1), "VALID", dimension_numbers=("CHWN", "HWIO", "CHWN"))


@jax.custom_vjp
def convolve_as_product(x: Array, kernel: Array) -> Array:
    """The same as one matrix product: inside a loop, XLA's own convolution is many times slower on the CPU."""
    return _product(x, kernel)[0]


def _product(x: Array, kernel: Array) -> tuple[Array, tuple[Array, Array]]:
    height, width, inputs, outputs = kernel.shape
    rows, columns = x.shape[1] - height + 1, x.shape[2] - width + 1
    side = _side(kernel, rows, columns)
    # Column by column: oneDNN, under the twins, adds in this order, and equal rounding means equal maxima in the pools.
    # Of more than eight pieces at once, XLA would make each, and then copy it to its place.
    down, across = range(height + side - 1), range(width + side - 1)
    joined = [jnp.concatenate([x[:, i : i + rows : side, j : j + columns : side] for i in down]) for j in across]
    patches = jnp.stack(joined).reshape(len(down) * len(across) * inputs, -1)
    y = _placed(kernel, side).reshape(len(patches), -1).T @ patches
    y = y.reshape(side, side, outputs, rows // side, columns // side, -1).transpose(2, 3, 0, 4, 1, 5)
    return y.reshape(outputs, rows, columns, -1), (kernel, patches)


def _product_gradients(residuals: tuple[Array, Array], gradient: Array) -> tuple[Array, Array]:
    kernel, patches = residuals
    outputs, rows, columns, batch = gradient.shape
    side = _side(kernel, rows, columns)
    squares = gradient.reshape(outputs, rows // side, side, columns // side, side, batch).transpose(2, 4, 0, 1, 3, 5)
    placed, gather = jax.vjp(partial(_placed, side=side), kernel)
    product = patches @ squares.reshape(side * side * outputs, -1).T
    return spread(gradient, kernel), *gather(product.reshape(placed.shape))


def _side(kernel: Array, rows: int, columns: int) -> int:
    """Of the squares of results that one patch gives.

    Two for images of one channel: their matrices, 10 x 25 in LeNet, are too small for products at full speed. As
    40 x 36 they have 1.4 times the operations, but patches, which overlap less, take a third of the memory.
    """
    return 2 if kernel.shape[2] == 1 and rows % 2 == columns % 2 == 0 else 1


def _placed(kernel: Array, side: int) -> Array:
    """[h, w, I, O] -> [w + side - 1, h + side - 1, I, side, side, O]: between zeros, for each result of a square."""
    kernel, last = kernel.swapaxes(0, 1), side - 1
    places = [jnp.pad(kernel, ((j, last - j), (i, last - i), (0, 0), (0, 0))) for i in range(side) for j in range(side)]
    return jnp.stack(places, 3).reshape(*places[0].shape[:3], side, side, -1)


convolve_as_product.defvjp(_product, _product_gradients)
