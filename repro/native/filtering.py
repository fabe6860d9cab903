"""Minimal filtering: convolution with fewer multiplications, as matrices that mnist_<framework>_filtering.py apply.

After S. Winograd, Arithmetic Complexity of Computations, 1980, and, for networks, A. Lavin and S. Gray, Fast Algorithms
for Convolutional Neural Networks, 2016; along the columns of an image: what a kernel does for a tile of neighboring
results is read off a few products, of sums over its columns and sums over the image's.

Sums are of other terms than the definition's and round otherwise, so portable numerics, whose sums must be exact, do
without. Gradients have tiles of four, with 8 multiplications for the 20 of a kernel five wide, and errors about five
times as large. The way forward has pairs, with 7 for 10, and errors a third larger. There, equal patches must give
equal results, or pools would choose other maxima than the twins'; and they do, for both results of a pair.
"""

from typing import NamedTuple

import numpy as np
from numpy.polynomial.polynomial import polyfromroots

TILE = 4  # neighboring results that share products in gradients; with more, rounding errors grow fast
POINTS = (0, 1, -1, 2, -2, 1 / 2, -1 / 2)  # small, so that their powers are; the last point of all is infinity


class Filter(NamedTuple):
    """A, G and B of Lavin and Gray, float32: a tile of T neighboring results of a kernel w wide, by N products.

    The results of a kernel g [w] over d [T + w - 1] are A^T ((G g) * (B d)).
    """

    result: np.ndarray  # [N, T]
    kernel: np.ndarray  # [N, w]
    image: np.ndarray  # [N, T + w - 1]

    @property
    def tile(self) -> int:
        return self.result.shape[1]


def fits(channels: int, width: int, columns: int) -> bool:
    """Whether it can give so many columns of results, of a kernel so wide over so many channels, and faster.

    With one channel, products are too small.
    """
    return channels > 1 and 1 < width <= len(POINTS) - TILE + 2 and columns % TILE == 0


def tiles(width: int) -> Filter:
    """TILE results by TILE + width - 1 products: Cook's and Toom's, of polynomials from their values at points."""
    points = np.array(POINTS[: TILE + width - 2])
    others = [np.delete(points, i) for i in range(len(points))]
    scale = np.array([np.prod(point - rest) for point, rest in zip(points, others, strict=True)])
    result = np.vstack([np.vander(points, TILE, increasing=True), np.eye(TILE)[-1]])
    kernel = np.vstack([np.vander(points, width, increasing=True) / scale[:, None], np.eye(width)[-1]])
    image = np.array([*(np.append(polyfromroots(rest), 0) for rest in others), polyfromroots(points)])
    return Filter(*(matrix.astype(np.float32) for matrix in (result, kernel, image)))


def pairs(width: int) -> Filter:
    """Two results, by 4 products for every three columns of the kernel, and by 3 for the two or four that remain.

    Of the image these take columns, and sums and differences of two. Where all columns that a pair reads are equal, the
    differences are 0, and both results the same sum of the other products.
    """
    three = Filter(
        result=np.array([[1, 0], [1, 1], [1, -1], [0, 1]]),
        kernel=np.array([[1, 0, 0], [1 / 2, 1 / 2, 1 / 2], [1 / 2, -1 / 2, 1 / 2], [0, 0, 1]]),
        image=np.array([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, -1, 0, 1]]),
    )
    two = Filter(
        result=np.array([[1, 0], [1, 1], [0, 1]]),
        kernel=np.array([[1, 0], [1, 1], [0, 1]]),
        image=np.array([[1, -1, 0], [0, 1, 0], [0, -1, 1]]),
    )
    twos, start, parts = -width % 3, 0, []
    for result, kernel, image in [three] * ((width - 2 * twos) // 3) + [two] * twos:
        around = (0, 0), (start, width - start - kernel.shape[1])
        parts.append((result, np.pad(kernel, around), np.pad(image, around)))
        start += kernel.shape[1]
    return Filter(*(np.concatenate(matrices).astype(np.float32) for matrices in zip(*parts, strict=True)))
