"""Convolution in JAX with fewer multiplications, and its two gradients; repro/portable/jax_convolution.py has the same.

Minimal filtering (S. Winograd, Arithmetic Complexity of Computations, 1980; for networks A. Lavin and S. Gray, Fast
Algorithms for Convolutional Neural Networks, 2016) along the columns of an image: what a kernel does for a tile of
neighboring results is read off a few products, of sums over its columns and sums over the image's.

Sums are of other terms than the definition's and round otherwise, so portable numerics, whose sums must be exact, do
without. Gradients have tiles of four, with 8 multiplications for the 20 of a kernel five wide, and errors about five
times as large. The way forward has pairs, with 7 for 10, and errors a third larger. There, equal patches must give
equal results, or pools would choose other maxima than the twins'; and they do, for both results of a pair.
"""

from typing import NamedTuple

import numpy as np
from jax import Array, lax
from jax import numpy as jnp
from numpy.polynomial.polynomial import polyfromroots

TILE = 4  # neighboring results that share products in gradients; with more, rounding errors grow fast
POINTS = (0, 1, -1, 2, -2, 1 / 2, -1 / 2)  # small, so that their powers are; the last point of all is infinity


class _Filter(NamedTuple):
    """A, G and B of Lavin and Gray, float32: a tile of T neighboring results of a kernel w wide, by N products.

    The results of a kernel g [w] over d [T + w - 1] are A^T ((G g) * (B d)).
    """

    result: np.ndarray  # [N, T]
    kernel: np.ndarray  # [N, w]
    image: np.ndarray  # [N, T + w - 1]

    @property
    def tile(self) -> int:
        return self.result.shape[1]


def fits(x: Array, kernel: Array) -> bool:
    """Whether these functions can do it for x and the kernel, and faster: with one channel, products are too small."""
    width = kernel.shape[1]
    return len(x) > 1 and 1 < width <= len(POINTS) - TILE + 2 and (x.shape[2] - width + 1) % TILE == 0


def correlate(x: Array, kernel: Array) -> Array:
    """[I, H, W, B] and [h, w, I, O] -> [O, H - h + 1, W - w + 1, B]."""
    height, width, _, outputs = kernel.shape
    rows, columns = x.shape[1] - height + 1, x.shape[2] - width + 1
    pair = _pairs(width)
    products = _batched(_of_kernel(pair, kernel), 1, _of_image(pair, x, rows, columns), 1)
    y = pair.result.T @ products.reshape(len(products), -1)
    y = y.reshape(pair.tile, outputs, rows, columns // pair.tile, -1).transpose(1, 2, 3, 0, 4)
    return y.reshape(outputs, rows, columns, -1)


def correlate_with(x: Array, gradient: Array) -> Array:
    """The gradient of correlate with respect to its kernel, of that with respect to its result [O, R, C, B]."""
    outputs, rows, columns, _ = gradient.shape
    height, width = x.shape[1] - rows + 1, x.shape[2] - columns + 1
    tile = _tiles(width)
    products = _batched(_of_image(tile, x, rows, columns), 2, _of_gradient(tile, gradient), 2)
    kernel = tile.kernel.T @ products.reshape(len(products), -1)
    return kernel.reshape(width, height, -1, outputs).swapaxes(0, 1)


def spread(gradient: Array, kernel: Array) -> Array:
    """The gradient of correlate with respect to x. What overlaps is added."""
    height, width, inputs, _ = kernel.shape
    _, rows, columns, batch = gradient.shape
    line, count, tile = columns // TILE * batch, width + TILE - 1, _tiles(width)
    parts = _batched(_of_kernel(tile, kernel), 2, _of_gradient(tile, gradient), 1).reshape(count, height, inputs, -1)
    total = jnp.zeros((count, inputs, (rows + height - 1) * line), gradient.dtype)
    for i in range(height):  # in place: a sum of padded parts takes XLA five times as long
        total = total.at[:, :, i * line : (i + rows) * line].add(parts[:, i])
    x = (tile.image.T @ total.reshape(count, -1)).reshape(count, inputs, -1, columns // TILE, batch)
    turns = -(-count // TILE)  # a tile's columns are its own four, and some of those after
    x = jnp.pad(x, [(0, turns * TILE - count)] + 4 * [(0, 0)]).reshape(turns, TILE, *x.shape[1:])
    x = sum(jnp.pad(x[i], 3 * [(0, 0)] + [(i, turns - 1 - i), (0, 0)]) for i in range(turns))
    x = x.transpose(1, 2, 3, 0, 4)
    return x.reshape(*x.shape[:2], -1, batch)[:, :, : columns + width - 1]


def _tiles(width: int) -> _Filter:
    """TILE results by TILE + width - 1 products: Cook's and Toom's, of polynomials from their values at points."""
    points = np.array(POINTS[: TILE + width - 2])
    others = [np.delete(points, i) for i in range(len(points))]
    scale = np.array([np.prod(point - rest) for point, rest in zip(points, others, strict=True)])
    result = np.vstack([np.vander(points, TILE, increasing=True), np.eye(TILE)[-1]])
    kernel = np.vstack([np.vander(points, width, increasing=True) / scale[:, None], np.eye(width)[-1]])
    image = np.array([*(np.append(polyfromroots(rest), 0) for rest in others), polyfromroots(points)])
    return _Filter(*(matrix.astype(np.float32) for matrix in (result, kernel, image)))


def _pairs(width: int) -> _Filter:
    """Two results, by 4 products for every three columns of the kernel, and by 3 for the two or four that remain.

    Of the image these take columns, and sums and differences of two. Where all columns that a pair reads are equal, the
    differences are 0, and both results the same sum of the other products.
    """
    three = _Filter(
        result=np.array([[1, 0], [1, 1], [1, -1], [0, 1]]),
        kernel=np.array([[1, 0, 0], [1 / 2, 1 / 2, 1 / 2], [1 / 2, -1 / 2, 1 / 2], [0, 0, 1]]),
        image=np.array([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, -1, 0, 1]]),
    )
    two = _Filter(
        result=np.array([[1, 0], [1, 1], [0, 1]]),
        kernel=np.array([[1, 0], [1, 1], [0, 1]]),
        image=np.array([[1, -1, 0], [0, 1, 0], [0, -1, 1]]),
    )
    twos, start, parts = -width % 3, 0, []
    for result, kernel, image in [three] * ((width - 2 * twos) // 3) + [two] * twos:
        around = (0, 0), (start, width - start - kernel.shape[1])
        parts.append((result, np.pad(kernel, around), np.pad(image, around)))
        start += kernel.shape[1]
    return _Filter(*(np.concatenate(matrices).astype(np.float32) for matrices in zip(*parts, strict=True)))


def _of_image(form: _Filter, x: Array, rows: int, columns: int) -> Array:
    """[C, H, W, B] -> [N, h * C, rows * tiles * B]: what a kernel's rows meet in each tile of results, by product."""
    # Column by column: of strided slices, which are fewer, XLA would compute x, a pooling, anew for each.
    met = [jnp.stack([x[:, :, i + j] for j in range(0, columns, form.tile)], 2) for i in range(form.image.shape[1])]
    values = (form.image @ jnp.stack(met).reshape(len(met), -1)).reshape(-1, *met[0].shape)
    height = x.shape[1] - rows + 1
    joined = jnp.concatenate([values[:, :, i : i + rows] for i in range(height)], 1)
    return joined.reshape(len(values), height * len(x), -1)


def _of_kernel(form: _Filter, kernel: Array) -> Array:
    """[h, w, I, O] -> [N, h * I, O]: its rows, by product."""
    values = form.kernel @ kernel.swapaxes(0, 1).reshape(kernel.shape[1], -1)
    return values.reshape(len(values), -1, kernel.shape[-1])


def _of_gradient(form: _Filter, gradient: Array) -> Array:
    """[O, R, C, B] -> [N, O, R * tiles * B]: its tiles, by product."""
    met = jnp.stack([gradient[:, :, i :: form.tile] for i in range(form.tile)])
    return (form.result @ met.reshape(form.tile, -1)).reshape(len(form.result), len(gradient), -1)


def _batched(a: Array, axis: int, b: Array, other: int) -> Array:
    """A matrix product for each of N, over these axes."""
    return lax.dot_general(a, b, (((axis,), (other,)), ((0,), (0,))))
