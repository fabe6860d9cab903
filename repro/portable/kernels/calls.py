"""Exact products as calls of kernels: JAX's and TensorFlow's.

xp.call(made, dtype, shape, *arrays) gives what kernels, `made`, compute of arrays. PyTorch's are in
pytorch/compiler/sums.py.
"""

from repro.portable.definitions.convolution import OUTPUTS_LAST
from repro.portable.definitions.xp import XlaBackend
from repro.portable.kernels import products
from repro.portable.kernels.contraction import in_float64
from repro.portable.kernels.convolution import Convolution, Operand, Part, forward, grad_images, grad_weight, in_rows
from repro.portable.kernels.pairs import in_pairs


def multiply(xp: XlaBackend, a, b, units=None, plus=None):
    """The product of matrices of int16, [M, K] and [K, N] -> float64 [M, N].

    With units, float64 [M, 1], and what is added, float32 [N], float32: see products.Product.
    """
    (rows, terms), columns, width = a.shape, b.shape[1], products.width()
    panels = xp.call(products.panels(terms, columns, width), "int16", (terms * columns,), b)
    finish = [each for each in (units, plus) if each is not None]
    given = products.Product(rows, terms // 2, columns, by_rows=True, finish=len(finish))
    dtype = "float32" if finish else "float64"
    return xp.call(products.product(given), dtype, (rows, columns), a, panels, *finish)


def convolve(xp: XlaBackend, q, w, conv: Convolution, *finish):
    """Images and [O, h, w, I], of one type -> images, float64.

    With units, float64, and what is added, float32, which broadcast: float32, see contraction.Sums.
    """
    return _sum(xp, forward(in_rows(q.shape), in_rows(w.shape), conv, _broadcast(finish)), q, w, *finish)


def convolve_with(xp: XlaBackend, q, g, shape, conv: Convolution):
    """The gradient with respect to a weight of this shape."""
    return _sum(xp, grad_weight(in_rows(q.shape), in_rows(g.shape), tuple(shape), conv, xp.ranks.size), q, g)


def convolve_back(xp: XlaBackend, g, w, image, conv: Convolution, *finish):
    """The gradient with respect to images of this shape; stride or dilation must be 1, and stride with units."""
    (down, across), (rows, columns) = conv.stride, (conv.layout.index(name) for name in "HW")
    order = OUTPUTS_LAST if "int16" in str(w.dtype) else (0, 1, 2, 3)
    gradients = {}
    given = in_rows(g.shape), tuple(w.shape), tuple(image), conv, order == OUTPUTS_LAST
    for part in grad_images(*given, _broadcast(finish)):
        taps = xp.permute(w[part.weight][:, ::-1, ::-1], order)
        y = _sum(xp, part, g, taps, *finish)
        if conv.stride == (1, 1):
            return y
        missing = {rows: -(-image[rows] // down), columns: -(-image[columns] // across)}
        edges = tuple((0, missing.get(axis, size) - size) for axis, size in enumerate(y.shape))
        gradients[part.place[rows].start, part.place[columns].start] = xp.pad(y, edges)
    none = next(iter(gradients.values())) * 0.0
    # Pixel by pixel of each square of a stride, between one another.
    lines = [xp.stack([gradients.get((i, j), none) for j in range(across)], columns + 1) for i in range(down)]
    y = xp.stack(lines, rows + 1)
    shape = [size * {rows: down, columns: across}.get(axis, 1) for axis, size in enumerate(none.shape)]
    return xp.reshape(y, tuple(shape))[tuple(slice(size) for size in image)]


def _broadcast(finish) -> tuple[Operand, ...]:
    """Arrays as operands that have no strides along axes of size 1."""
    return tuple(in_rows(each.shape).broadcast() for each in finish)


def _sum(xp: XlaBackend, part: Part, images, other, *finish):
    made = in_pairs(part.sums) if "int16" in str(images.dtype) else in_float64(part.sums)
    return xp.call(made, "float32" if finish else "float64", part.shape, images, other, *finish)
