"""The two gradients of a convolution in JAX, with fewer multiplications than in repro/portable/jax_convolution.py.

Minimal filtering (S. Winograd, Arithmetic Complexity of Computations, 1980; for networks A. Lavin and S. Gray, Fast
Algorithms for Convolutional Neural Networks, 2016) along the columns of an image: what a kernel five wide does for four
neighboring results, 20 multiplications, is read off 8 products, of kernel, image and gradient each taken to 8 points.

Sums are of other terms than the definition's and round otherwise, with errors about five times as large. So portable
numerics, whose sums must be exact, do without, and so does the way forward: there, equal patches must give equal
results, or pools would choose other maxima than the twins'.
"""

from typing import NamedTuple

import numpy as np
from jax import Array, lax
from jax import numpy as jnp
from numpy.polynomial.polynomial import polyfromroots

TILE = 4  # neighboring results that share products; with more, rounding errors grow fast
POINTS = (0, 1, -1, 2, -2, 1 / 2, -1 / 2)  # small, so that their powers are; the last point of all is infinity


def fits(x: Array, kernel: Array) -> bool:
    """Whether these functions can do it for x and the kernel, and faster: with one channel, products are too small."""
    width = kernel.shape[1]
    return len(x) > 1 and width <= len(POINTS) - TILE + 2 and (x.shape[2] - width + 1) % TILE == 0


def correlate_with(x: Array, gradient: Array) -> Array:
    """The gradient with respect to the kernel, [h, w, I, O], of that with respect to the result [O, R, C, B]."""
    outputs, rows, columns, _ = gradient.shape
    height, width = x.shape[1] - rows + 1, x.shape[2] - columns + 1
    products = _batched(_of_image(x, rows, columns), 2, _of_gradient(gradient, width), 2)
    kernel = _matrices(width).kernel.T @ products.reshape(len(products), -1)
    return kernel.reshape(width, height, -1, outputs).swapaxes(0, 1)


def spread(gradient: Array, kernel: Array) -> Array:
    """The gradient with respect to x, [I, H, W, B]. What overlaps is added."""
    height, width, inputs, _ = kernel.shape
    _, rows, columns, batch = gradient.shape
    line, count = columns // TILE * batch, width + TILE - 1
    parts = _batched(_of_kernel(kernel), 2, _of_gradient(gradient, width), 1).reshape(count, height, inputs, -1)
    total = jnp.zeros((count, inputs, (rows + height - 1) * line), gradient.dtype)
    for i in range(height):  # in place: a sum of padded parts takes XLA five times as long
        total = total.at[:, :, i * line : (i + rows) * line].add(parts[:, i])
    tiles = (_matrices(width).image.T @ total.reshape(count, -1)).reshape(count, inputs, -1, columns // TILE, batch)
    turns = -(-count // TILE)  # a tile's columns are its own four, and some of those after
    tiles = jnp.pad(tiles, [(0, turns * TILE - count)] + 4 * [(0, 0)]).reshape(turns, TILE, *tiles.shape[1:])
    x = sum(jnp.pad(tiles[i], 3 * [(0, 0)] + [(i, turns - 1 - i), (0, 0)]) for i in range(turns))
    x = x.transpose(1, 2, 3, 0, 4)
    return x.reshape(*x.shape[:2], -1, batch)[:, :, : columns + width - 1]


class _Matrices(NamedTuple):
    """A, G and B of Lavin and Gray, float32, for N = TILE + width - 1 points.

    The results of a kernel g [width] over d [N] are A^T ((G g) * (B d)).
    """

    result: np.ndarray  # [N, TILE]
    kernel: np.ndarray  # [N, width]
    image: np.ndarray  # [N, N]


def _matrices(width: int) -> _Matrices:
    """By Cook's and Toom's construction: products of polynomials from their values at points."""
    points = np.array(POINTS[: TILE + width - 2])
    others = [np.delete(points, i) for i in range(len(points))]
    scale = np.array([np.prod(point - rest) for point, rest in zip(points, others, strict=True)])
    result = np.vstack([np.vander(points, TILE, increasing=True), np.eye(TILE)[-1]])
    kernel = np.vstack([np.vander(points, width, increasing=True) / scale[:, None], np.eye(width)[-1]])
    image = np.array([*(np.append(polyfromroots(rest), 0) for rest in others), polyfromroots(points)])
    return _Matrices(*(matrix.astype(np.float32) for matrix in (result, kernel, image)))


def _of_image(x: Array, rows: int, columns: int) -> Array:
    """[C, H, W, B] -> [N, h * C, rows * tiles * B]: what a kernel's rows meet in each tile of results, at N points."""
    height, matrix = x.shape[1] - rows + 1, _matrices(x.shape[2] - columns + 1).image
    starts = range(len(matrix))
    met = [
        jnp.concatenate([x[:, i : i + rows, j : j + columns - TILE + 1 : TILE] for i in range(height)]) for j in starts
    ]
    return (matrix @ jnp.stack(met).reshape(len(matrix), -1)).reshape(len(matrix), height * len(x), -1)


def _of_kernel(kernel: Array) -> Array:
    """[h, w, I, O] -> [N, h * I, O]: its rows at N points."""
    matrix = _matrices(kernel.shape[1]).kernel
    values = matrix @ kernel.swapaxes(0, 1).reshape(kernel.shape[1], -1)
    return values.reshape(len(matrix), -1, kernel.shape[-1])


def _of_gradient(gradient: Array, width: int) -> Array:
    """[O, R, C, B] -> [N, O, R * tiles * B]: its tiles at N points."""
    matrix = _matrices(width).result
    tiles = jnp.stack([gradient[:, :, i::TILE] for i in range(TILE)])
    return (matrix @ tiles.reshape(TILE, -1)).reshape(len(matrix), len(gradient), -1)


def _batched(a: Array, axis: int, b: Array, other: int) -> Array:
    """A matrix product for each point, over these axes."""
    return lax.dot_general(a, b, (((axis,), (other,)), ((0,), (0,))))
