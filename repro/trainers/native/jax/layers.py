"""Layers of mnist_jax.py, fast on a CPU.

The batch is the last axis of images, [C, H, W, B]: XLA's loops on the CPU then run over whole vectors. Its counterparts
are repro/trainers/native/pytorch/layers.py and repro/trainers/native/tensorflow/layers.py.
"""

import jax
import numpy as np
from flax import linen as nn
from jax import Array, lax
from jax import numpy as jnp

from repro.portable.backends.correlation.jax import correlate, correlate_with, spread


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
    """A convolution as a matrix product: inside a loop, XLA's own is many times slower on the CPU."""
    return correlate(x, kernel)


def _convolve_forward(x: Array, kernel: Array) -> tuple[Array, tuple[Array, Array]]:
    return convolve_as_product(x, kernel), (x, kernel)


def _convolve_backward(operands: tuple[Array, Array], gradient: Array) -> tuple[Array, Array]:
    x, kernel = operands
    return spread(gradient, kernel), correlate_with(x, gradient)


convolve_as_product.defvjp(_convolve_forward, _convolve_backward)

WINDOW = A, B, C, D = np.arange(4, dtype=np.uint8)  # the elements of a 2 x 2 window, row by row


@jax.custom_vjp
def max_pool(x: Array) -> Array:
    """Maximum of each 2 x 2 window; the gradient goes to the first of equals."""
    return _pool_forward(x)[0]


def _pool_forward(x: Array) -> tuple[Array, Array]:
    channels, height, width, batch = x.shape
    x = x.reshape(channels, height // 2, 2, width // 2, 2, batch)
    a, b, c, d = (x[:, :, i, :, j] for i in range(2) for j in range(2))
    upper, lower = jnp.where(a >= b, a, b), jnp.where(c >= d, c, d)
    first = jnp.where(upper >= lower, jnp.where(a >= b, A, B), jnp.where(c >= d, C, D))
    return jnp.where(upper >= lower, upper, lower), first


def _pool_backward(first: Array, gradient: Array) -> tuple[Array]:
    # Joined, not added up: XLA writes each of the four straight to its place.
    a, b, c, d = (jnp.where(first == element, gradient, 0) for element in WINDOW)
    x = jnp.stack([jnp.stack([a, b], 3), jnp.stack([c, d], 3)], 2)
    channels, height, _, width, _, batch = x.shape
    return (x.reshape(channels, 2 * height, 2 * width, batch),)


max_pool.defvjp(_pool_forward, _pool_backward)
