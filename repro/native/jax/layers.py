"""The layers of mnist_jax.py, fast in a loop on the CPU, rounding and choosing as the twins do.

The batch is the last axis of images, [C, H, W, B]: XLA's loops on the CPU then run over whole vectors.
"""

import jax
from flax import linen as nn
from jax import Array, lax

from repro.portable.jax.convolution import correlate, correlate_with, spread


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
    """The same as matrix products: inside a loop, XLA's own convolution is many times slower on the CPU."""
    return correlate(x, kernel)


def _forward(x: Array, kernel: Array) -> tuple[Array, tuple[Array, Array]]:
    return convolve_as_product(x, kernel), (x, kernel)


def _backward(operands: tuple[Array, Array], gradient: Array) -> tuple[Array, Array]:
    x, kernel = operands
    return spread(gradient, kernel), correlate_with(x, gradient)


convolve_as_product.defvjp(_forward, _backward)
