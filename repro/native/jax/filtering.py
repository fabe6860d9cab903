"""Convolution in JAX by minimal filtering, and its two gradients, with fewer multiplications than by definition.

repro/native/filtering.py says how, repro/portable/jax/convolution.py is the definition. The twin is
repro/native/tensorflow/filtering.py.
"""

from jax import Array, lax
from jax import numpy as jnp

from repro.native.filtering import TILE, Filter, pairs, tiles


def correlate(x: Array, kernel: Array) -> Array:
    """[I, H, W, B] and [h, w, I, O] -> [O, H - h + 1, W - w + 1, B]."""
    height, width, _, outputs = kernel.shape
    rows, columns = x.shape[1] - height + 1, x.shape[2] - width + 1
    pair = pairs(width)
    products = _batched(_of_kernel(pair, kernel), 1, _of_image(pair, x, rows, columns), 1)
    y = pair.result.T @ products.reshape(len(products), -1)
    y = y.reshape(pair.tile, outputs, rows, columns // pair.tile, -1).transpose(1, 2, 3, 0, 4)
    return y.reshape(outputs, rows, columns, -1)


def correlate_with(x: Array, gradient: Array) -> Array:
    """The gradient of correlate with respect to its kernel, of that with respect to its result [O, R, C, B]."""
    outputs, rows, columns, _ = gradient.shape
    height, width = x.shape[1] - rows + 1, x.shape[2] - columns + 1
    tile = tiles(width)
    products = _batched(_of_image(tile, x, rows, columns), 2, _of_gradient(tile, gradient), 2)
    kernel = tile.kernel.T @ products.reshape(len(products), -1)
    return kernel.reshape(width, height, -1, outputs).swapaxes(0, 1)


def spread(gradient: Array, kernel: Array) -> Array:
    """The gradient of correlate with respect to x. What overlaps is added."""
    height, width, inputs, _ = kernel.shape
    _, rows, columns, batch = gradient.shape
    line, count, tile = columns // TILE * batch, width + TILE - 1, tiles(width)
    parts = _batched(_of_kernel(tile, kernel), 2, _of_gradient(tile, gradient), 1).reshape(count, height, inputs, -1)
    total = jnp.zeros((count, inputs, (rows + height - 1) * line), gradient.dtype)
    for i in range(height):  # in place: XLA is slow at a sum of padded parts
        total = total.at[:, :, i * line : (i + rows) * line].add(parts[:, i])
    x = (tile.image.T @ total.reshape(count, -1)).reshape(count, inputs, -1, columns // TILE, batch)
    turns = -(-count // TILE)  # a tile's columns are its own four, and some of those after
    x = jnp.pad(x, [(0, turns * TILE - count)] + 4 * [(0, 0)]).reshape(turns, TILE, *x.shape[1:])
    x = sum(jnp.pad(x[i], 3 * [(0, 0)] + [(i, turns - 1 - i), (0, 0)]) for i in range(turns))
    x = x.transpose(1, 2, 3, 0, 4)
    return x.reshape(*x.shape[:2], -1, batch)[:, :, : columns + width - 1]


def _of_image(form: Filter, x: Array, rows: int, columns: int) -> Array:
    """[C, H, W, B] -> [N, h * C, rows * tiles * B]: what a kernel's rows meet in each tile of results, by product."""
    # Column by column: of strided slices, which are fewer, XLA would compute x, a pooling, anew for each.
    met = [jnp.stack([x[:, :, i + j] for j in range(0, columns, form.tile)], 2) for i in range(form.image.shape[1])]
    values = (form.image @ jnp.stack(met).reshape(len(met), -1)).reshape(-1, *met[0].shape)
    height = x.shape[1] - rows + 1
    joined = jnp.concatenate([values[:, :, i : i + rows] for i in range(height)], 1)
    return joined.reshape(len(values), height * len(x), -1)


def _of_kernel(form: Filter, kernel: Array) -> Array:
    """[h, w, I, O] -> [N, h * I, O]: its rows, by product."""
    values = form.kernel @ kernel.swapaxes(0, 1).reshape(kernel.shape[1], -1)
    return values.reshape(len(values), -1, kernel.shape[-1])


def _of_gradient(form: Filter, gradient: Array) -> Array:
    """[O, R, C, B] -> [N, O, R * tiles * B]: its tiles, by product."""
    met = jnp.stack([gradient[:, :, i :: form.tile] for i in range(form.tile)])
    return (form.result @ met.reshape(form.tile, -1)).reshape(len(form.result), len(gradient), -1)


def _batched(a: Array, axis: int, b: Array, other: int) -> Array:
    """A matrix product for each of N, over these axes."""
    return lax.dot_general(a, b, (((axis,), (other,)), ((0,), (0,))))
