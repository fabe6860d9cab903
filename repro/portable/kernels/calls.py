"""Exact sums of products of arrays that lie in rows, over a backend X that calls loops: JAX's and TensorFlow's.

X.call(loops, dtype, shape, *arrays) gives what loops make of arrays. PyTorch's are in pytorch/fusion/sums.py.
"""

from repro.portable.kernels import products
from repro.portable.kernels.contraction import in_float64
from repro.portable.kernels.convolution import How, Part, forward, in_rows, of_images, of_weight
from repro.portable.kernels.pairs import in_pairs
from repro.portable.operations.convolution import OUTPUTS_LAST


def multiply(X, a, b, units=None, plus=None):
    """The product of matrices of int16, [M, K] and [K, N] -> float64 [M, N].

    With units, float64 [M, 1], and what is added, float32 [N], float32: see products.Product.
    """
    (rows, terms), columns, width = a.shape, b.shape[1], products.width()
    panels = X.call(products.panels(terms, columns, width), "int16", (terms * columns,), b)
    finish = [each for each in (units, plus) if each is not None]
    given = products.Product(rows, terms // 2, columns, by_rows=True, finish=len(finish))
    dtype = "float32" if finish else "float64"
    return X.call(products.product(given), dtype, (rows, columns), a, panels, *finish)


def convolve(X, q, w, how: How):
    """Images and [O, h, w, I], of one type -> images, float64."""
    return _sum(X, forward(in_rows(q.shape), in_rows(w.shape), how), q, w)


def convolve_with(X, q, g, shape, how: How):
    """The gradient with respect to a weight of this shape."""
    return _sum(X, of_weight(in_rows(q.shape), in_rows(g.shape), tuple(shape), how, X.ranks.size), q, g)


def convolve_back(X, g, w, image, how: How):
    """The gradient with respect to images of this shape; stride or dilation must be 1."""
    (down, across), (rows, columns) = how.stride, (how.layout.index(name) for name in "HW")
    order = OUTPUTS_LAST if "int16" in str(w.dtype) else (0, 1, 2, 3)
    found = {}
    for part in of_images(in_rows(g.shape), tuple(w.shape), tuple(image), how, order == OUTPUTS_LAST):
        taps = X.permute(w[part.weight][:, ::-1, ::-1], order)
        y = _sum(X, part, g, taps)
        if how.stride == (1, 1):
            return y
        missing = {rows: -(-image[rows] // down), columns: -(-image[columns] // across)}
        edges = tuple((0, missing.get(axis, size) - size) for axis, size in enumerate(y.shape))
        found[part.place[rows].start, part.place[columns].start] = X.pad(y, edges)
    none = next(iter(found.values())) * 0.0
    # Pixel by pixel of each square of a stride, between one another.
    lines = [X.stack([found.get((i, j), none) for j in range(across)], columns + 1) for i in range(down)]
    y = X.stack(lines, rows + 1)
    shape = [size * {rows: down, columns: across}.get(axis, 1) for axis, size in enumerate(none.shape)]
    return X.reshape(y, tuple(shape))[tuple(slice(size) for size in image)]


def _sum(X, part: Part, images, other):
    loops = in_pairs(part.sums) if "int16" in str(images.dtype) else in_float64(part.sums)
    return X.call(loops, "float64", part.shape, images, other)
