"""Convolution in JAX as one matrix product, and its gradients.

Images are [C, H, W, B] and kernels [h, w, I, O], of any type: float32 from layers.py, and float64 with exact sums from
portable numerics. Its counterpart is repro/portable/backends/correlation/tensorflow.py.
"""

from functools import partial

import jax
from jax import Array
from jax import numpy as jnp


def correlate(x: Array, kernel: Array) -> Array:
    """[I, H, W, B] and [h, w, I, O] -> [O, H - h + 1, W - w + 1, B]: one matrix product."""
    height, width, _, outputs = kernel.shape
    rows, columns = x.shape[1] - height + 1, x.shape[2] - width + 1
    side = _side(x, rows, columns)
    y = _placed(kernel, side).reshape(-1, side * side * outputs).T @ _patches(x, rows, columns)
    y = y.reshape(side, side, outputs, rows // side, columns // side, -1).transpose(2, 3, 0, 4, 1, 5)
    return y.reshape(outputs, rows, columns, -1)


def correlate_with(x: Array, gradient: Array) -> Array:
    """The gradient of correlate with respect to its kernel, of that with respect to its result [O, R, C, B]."""
    outputs, rows, columns, batch = gradient.shape
    height, width = x.shape[1] - rows + 1, x.shape[2] - columns + 1
    side = _side(x, rows, columns)
    squares = gradient.reshape(outputs, rows // side, side, columns // side, side, batch).transpose(2, 4, 0, 1, 3, 5)
    product = _patches(x, rows, columns) @ squares.reshape(side * side * outputs, -1).T
    product = product.reshape(width + side - 1, height + side - 1, -1, side, side, outputs)
    kernel = jax.ShapeDtypeStruct((height, width, len(x), outputs), product.dtype)
    return jax.linear_transpose(partial(_placed, side=side), kernel)(product)[0]


def _side(x: Array, rows: int, columns: int) -> int:
    """The side of the squares of results that a patch of x gives.

    Two for images of one channel: their matrices, 10 x 25 in LeNet, are too small for products at full speed. As
    40 x 36 they have 1.4 times the operations, but patches, which overlap less, take a third of the memory.
    """
    return 2 if len(x) == 1 and rows % 2 == columns % 2 == 0 else 1


def _placed(kernel: Array, side: int) -> Array:
    """[h, w, I, O] -> [w + side - 1, h + side - 1, I, side, side, O]: between zeros, for each result of a square."""
    kernel, last = kernel.swapaxes(0, 1), side - 1
    places = [jnp.pad(kernel, ((j, last - j), (i, last - i), (0, 0), (0, 0))) for i in range(side) for j in range(side)]
    return jnp.stack(places, 3).reshape(*places[0].shape[:3], side, side, -1)


def _patches(x: Array, rows: int, columns: int) -> Array:
    """[C, H, W, B] -> [w * h * C, squares * B], in the order of a placed kernel: where each of its elements meets x."""
    side = _side(x, rows, columns)
    down, across = range(x.shape[1] - rows + side), range(x.shape[2] - columns + side)
    # Column by column, as oneDNN adds under PyTorch: where sums are not exact, equal rounding means equal maxima in the
    # pools. Of more than eight pieces at once, XLA would make each, and then copy it to its place.
    joined = [jnp.concatenate([x[:, i : i + rows : side, j : j + columns : side] for i in down]) for j in across]
    return jnp.stack(joined).reshape(len(down) * len(across) * len(x), -1)


def spread(gradient: Array, kernel: Array) -> Array:
    """The gradient of correlate with respect to x. What overlaps is added.

    Row by row of the kernel: what one product gives is still in the caches when it is added.
    """
    height, width, inputs, outputs = kernel.shape
    _, rows, columns, batch = gradient.shape
    lines = []
    for i in range(height):
        parts = kernel[i].reshape(-1, outputs) @ gradient.reshape(outputs, -1)
        parts = parts.reshape(width, inputs, rows, columns, batch)
        lines.append(sum(_between(parts[j], 2, j, width - 1 - j) for j in range(width)))  # [I, R, W, B]
    return sum(_between(line, 1, i, height - 1 - i) for i, line in enumerate(lines))


def _between(x: Array, axis: int, before: int, after: int) -> Array:
    """x between zeros along an axis, `before` and `after` of them."""
    return jnp.pad(x, [(before, after) if axis == each else (0, 0) for each in range(x.ndim)])
