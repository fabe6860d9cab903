"""The layers of mnist_jax.py, fast in a loop on the CPU, rounding and choosing as the twins do.

The batch is the last axis of images, [C, H, W, B]: XLA's loops on the CPU then run over whole vectors.
"""

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
    # Column by column: oneDNN, under the twins, adds in this order, and equal rounding means equal maxima in the pools.
    # Of more than eight pieces at once, XLA would make each, and then copy it to its place.
    joined = [jnp.concatenate([x[:, i : i + rows, j : j + columns] for i in range(height)]) for j in range(width)]
    patches = jnp.stack(joined).reshape(height * width * inputs, -1)
    matrix = kernel.swapaxes(0, 1).reshape(-1, outputs)
    matrix = jnp.pad(matrix, ((0, 0), (0, -outputs % 4)))  # XLA finds four rows of y at once, and others one by one
    y = (matrix.T @ patches)[:outputs]
    return y.reshape(outputs, rows, columns, -1), (kernel, patches)


def _product_gradients(residuals: tuple[Array, Array], gradient: Array) -> tuple[Array, Array]:
    kernel, patches = residuals
    height, width, inputs, outputs = kernel.shape
    kernel_gradient = (patches @ gradient.reshape(outputs, -1).T).reshape(width, height, inputs, outputs)
    return spread(gradient, kernel), kernel_gradient.swapaxes(0, 1)


convolve_as_product.defvjp(_product, _product_gradients)
