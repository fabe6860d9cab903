"""Convolution of images in any layout.

A `layout` names the axes of images: BHWC, BCHW, CHWB. Weights are [O, h, w, I / groups].
"""

import math

from repro.portable.definitions.grids import (
    Operation,
    exact_sum,
    operands,
    product,
    product_of_slices,
    quantize,
    scaled,
    sliced,
    unit_of,
)
from repro.portable.definitions.xp import Backend
from repro.portable.numbers.constants import BITS

Pair = tuple[int, int]
BHWC = "BHWC"


def _forward(
    xp: Backend, x, weight, bias, stride: Pair, padding: Pair, dilation: Pair, groups: int, layout: str = BHWC
):
    """x [B, H, W, I], weight [O, h, w, I / groups], bias [O] or None -> [B, H', W', O].

    A grid for each sample, one for the weight.
    """
    q, p = quantize(xp, x, all_but("B", layout))
    w, s = quantize(xp, weight, (0, 1, 2, 3))
    work = math.prod(weight.shape) * math.prod(x.shape) // x.shape[layout.index("C")]
    q, w = xp.operands(q, w, work=work, groups=groups, layout=layout)
    plus = None if bias is None else along("C", xp, bias, layout)
    unit = unit_of(xp, 2 * BITS, p, s)
    return xp.rounded_convolve(q, w, unit, plus, stride, padding, dilation, groups, layout), (q, p, w, s)


def _backward(
    xp: Backend,
    saved,
    gradient,
    needs,
    shapes,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    groups: int,
    layout: str = BHWC,
):
    """x keeps the grids of its samples: their scales go into the gradient, which then has a grid for each output."""
    q, p, w, s = saved
    grad_x = grad_weight = grad_bias = None
    if needs[0]:
        g, r = quantize(xp, gradient, all_but("B", layout))
        how = stride, padding, dilation, groups, layout
        grad_x = xp.rounded_convolve_back(xp.operand_like(g, w), w, shapes[0], unit_of(xp, 2 * BITS, r, s), *how)
    if needs[1]:
        h, r = quantize(xp, gradient * p, all_but("C", layout), batch=True)
        total = xp.convolve_with(q, xp.operand_like(h, w), shapes[1], stride, padding, dilation, groups, layout)
        grad_weight = xp.r32(scaled(xp, xp.total(total), 2 * BITS, xp.reshape(r, (-1, 1, 1, 1))))
    if shapes[2] is not None and needs[2]:
        grad_bias = xp.r32(xp.reshape(exact_sum(xp, gradient, all_but("C", layout), batch=True), (-1,)))
    return grad_x, grad_weight, grad_bias


convolution = Operation(_forward, _backward)


OUTPUTS_LAST, OUTPUTS_FIRST = (1, 2, 3, 0), (3, 0, 1, 2)
"""[O, h, w, I] -> [h, w, I, O], and back."""


PLAIN = {"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1, "layout": "CHWB"}


def plain(stride: Pair, padding: Pair, dilation: Pair, groups: int, layout: str) -> bool:
    """True if a convolution is valid, dense and of stride 1, with the batch last: backends do these by one product."""
    return tuple(PLAIN.values()) == (stride, padding, dilation, groups, layout)


def all_but(axis: str, layout: str) -> tuple[int, ...]:
    """The other axes of images."""
    return tuple(index for index, name in enumerate(layout) if name != axis)


def along(axis: str, xp: Backend, x, layout: str):
    """[N] as images that have N along this axis, and 1 along the others."""
    return xp.reshape(x, tuple(-1 if name == axis else 1 for name in layout))


def reordered(xp: Backend, x, old: str, new: str):
    """Images with their axes in another order."""
    return x if old == new else xp.permute(x, tuple(old.index(name) for name in new))


def convolve(xp: Backend, q, w, stride: Pair, padding: Pair, dilation: Pair, groups: int, layout: str):
    """The convolution of integers, float64, exact: [B, H, W, I] and [O, h, w, I / groups] -> [B, H', W', O]."""
    q = reordered(xp, q, layout, BHWC)
    meets = patches(xp, q, w.shape[1:3], stride, padding, dilation, groups)
    outputs, rows, columns = w.shape[0], meets.shape[2], meets.shape[3]
    matrix = xp.reshape(w, (groups, outputs // groups, -1))
    y = product(xp, xp.reshape(meets, (groups, -1, meets.shape[-1])), xp.transpose(matrix))
    return reordered(xp, xp.reshape(xp.permute(y, (1, 0, 2)), (-1, rows, columns, outputs)), BHWC, layout)


def convolve_with(xp: Backend, q, g, shape, stride: Pair, padding: Pair, dilation: Pair, groups: int, layout: str):
    """The exact gradient with respect to a weight of this shape, of integers, that of the result being g."""
    outputs, height, width, inputs = shape
    q, g = reordered(xp, q, layout, BHWC), reordered(xp, g, layout, BHWC)
    meets = patches(xp, q, (height, width), stride, padding, dilation, groups)
    each = xp.reshape(g, (-1, groups, outputs // groups))
    total = product(
        xp, xp.permute(each, (1, 2, 0)), xp.reshape(meets, (groups, -1, meets.shape[-1])), ranks=xp.ranks.size
    )
    return xp.reshape(total, (outputs, height, width, inputs))


def convolve_back(xp: Backend, g, w, image, stride: Pair, padding: Pair, dilation: Pair, groups: int, layout: str):
    """The exact gradient with respect to images of this shape, of integers, that of the result being g."""
    outputs, height, width, inputs = w.shape
    g, image = reordered(xp, g, layout, BHWC), tuple(image[layout.index(name)] for name in BHWC)
    batch, rows, columns, _ = g.shape
    each = xp.permute(xp.reshape(g, (-1, groups, outputs // groups)), (1, 0, 2))
    parts = product(xp, each, xp.reshape(w, (groups, outputs // groups, -1)))
    parts = xp.reshape(parts, (groups, batch, rows, columns, height, width, inputs))
    total = None
    for i in range(height):
        for j in range(width):
            offset = i * dilation[0], j * dilation[1]
            part = placed(xp, parts[:, :, :, :, i, j], image, stride, padding, offset)
            total = part if total is None else total + part
    return reordered(xp, xp.reshape(xp.permute(total, (1, 2, 3, 0, 4)), image), BHWC, layout)


def patches(xp: Backend, x, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair, groups: int):
    """[B, H, W, C] -> [groups, B, H', W', h w C / groups]: what meets each element of a kernel."""
    batch, height, width, channels = x.shape
    x = xp.pad(x, ((0, 0), (padding[0], padding[0]), (padding[1], padding[1]), (0, 0)))
    rows, columns = (
        (size + 2 * pad - hole * (length - 1) - 1) // step + 1
        for size, pad, hole, length, step in zip((height, width), padding, dilation, kernel, stride, strict=True)
    )
    parts = []
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            top, left = i * dilation[0], j * dilation[1]
            bottom, right = top + stride[0] * (rows - 1) + 1, left + stride[1] * (columns - 1) + 1
            parts.append(x[:, top : bottom : stride[0], left : right : stride[1]])
    joined = xp.reshape(xp.stack(parts, 3), (batch, rows, columns, len(parts), groups, channels // groups))
    return xp.reshape(xp.permute(joined, (4, 0, 1, 2, 3, 5)), (groups, batch, rows, columns, -1))


def placed(xp: Backend, part, image, stride: Pair, padding: Pair, offset: Pair):
    """[..., H', W', C] between zeros where one element of a kernel met the images: [..., H, W, C]."""
    *outer, rows, columns, channels = part.shape
    lead = ((0, 0),) * len(outer)
    if stride != (1, 1):  # zeros between the numbers
        part = xp.reshape(part, (*outer, rows, 1, columns, 1, channels))
        part = xp.pad(part, (*lead, (0, 0), (0, stride[0] - 1), (0, 0), (0, stride[1] - 1), (0, 0)))
        rows, columns = rows * stride[0], columns * stride[1]
        part = xp.reshape(part, (*outer, rows, columns, channels))
    edges = []
    for axis, size, pad, first in zip((0, 1), (rows, columns), padding, offset, strict=True):
        begin = first - pad
        part = part[(*(slice(None),) * (len(outer) + axis), slice(max(0, -begin), None))]
        begin, left = min(max(0, begin), image[1 + axis]), size - max(0, -begin)
        keep = max(0, min(left, image[1 + axis] - begin))
        part = part[(*(slice(None),) * (len(outer) + axis), slice(0, keep))]
        edges.append((begin, image[1 + axis] - begin - keep))
    return xp.pad(part, (*lead, *edges, (0, 0)))


# --- images [B, C, H, W], weights [O, I / groups, h, w], operands in slices --------------------------------------------

PLANAR = "BCHW"


def planar_forward(
    xp: Backend, x, weight, bias, stride: Pair, padding: Pair, dilation: Pair, groups: int, slices: int = 1
):
    """x [B, I, H, W], weight [O, I / groups, h, w] -> [B, O, H', W'], as `convolution`."""
    how = stride, padding, dilation, groups, PLANAR
    (q, p), (w, s) = _images(xp, x, slices), _taps(xp, weight, slices)
    q, w = operands(xp, q, w, work=_work(x, weight), groups=groups, layout=PLANAR)
    plus = None if bias is None else along("C", xp, bias, PLANAR)
    if len(q) == 1:
        return xp.rounded_convolve(q[0], w[0], unit_of(xp, 2 * BITS, p, s), plus, *how)
    y = product_of_slices(lambda a, b: xp.convolve(a, b, *how), q, w)
    return xp.r32(scaled(xp, y, 2 * BITS, p, s, plus=plus))


def planar_backward(
    xp: Backend,
    x,
    weight,
    gradient,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    groups: int,
    needs: tuple[bool, bool],
    slices: int = 1,
):
    """The gradients of planar_forward with respect to x and to the weight, each if needed."""
    how = stride, padding, dilation, groups, PLANAR
    (q, p), (w, s) = _images(xp, x, slices), _taps(xp, weight, slices)
    q, w = operands(xp, q, w, work=_work(x, weight), groups=groups, layout=PLANAR)
    grad_x = grad_weight = None
    if needs[0]:
        g, r = _images(xp, gradient, slices)
        grad_x = _images_back(xp, [xp.operand_like(each, w[0]) for each in g], w, tuple(x.shape), (r, s), how)
    if needs[1]:
        grad_weight = _grad_taps(xp, q, gradient * p, w[0], weight, how, slices)
    return grad_x, grad_weight


def transposed_forward(
    xp: Backend, x, weight, stride: Pair, padding: Pair, dilation: Pair, groups: int, image, slices: int = 1
):
    """x [B, I, H, W], weight [I, O / groups, h, w] -> images of this shape: a convolution's gradient, the other way."""
    how = stride, padding, dilation, groups, PLANAR
    (q, p), (w, s) = _images(xp, x, slices), _taps(xp, weight, slices)
    q, w = operands(xp, q, w, work=0, groups=groups, layout=PLANAR)
    return _images_back(xp, q, w, image, (p, s), how)


def transposed_backward(
    xp: Backend,
    x,
    weight,
    gradient,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    groups: int,
    needs: tuple[bool, bool],
    slices: int = 1,
):
    """The gradients of transposed_forward with respect to x and to the weight, each if needed."""
    how = stride, padding, dilation, groups, PLANAR
    (g, r), (w, s) = _images(xp, gradient, slices), _taps(xp, weight, slices)
    g, w = operands(xp, g, w, work=0, groups=groups, layout=PLANAR)
    grad_x = grad_weight = None
    if needs[0]:
        total = product_of_slices(lambda a, b: xp.convolve(a, b, *how), g, w)
        grad_x = xp.r32(scaled(xp, total, 2 * BITS, r, s))
    if needs[1]:
        grad_weight = _grad_taps(xp, g, x * r, w[0], weight, how, slices)
    return grad_x, grad_weight


def _images_back(xp: Backend, g, w, image, scales, how):
    """The gradient with respect to images of this shape, of operands in slices, rounded."""
    if len(g) == 1:
        return xp.rounded_convolve_back(g[0], w[0], image, unit_of(xp, 2 * BITS, *scales), *how)
    total = product_of_slices(lambda a, b: xp.convolve_back(a, b, image, *how), g, w)
    return xp.r32(scaled(xp, total, 2 * BITS, *scales))


def _images(xp: Backend, x, slices: int):
    """A grid for each sample."""
    return sliced(xp, x, all_but("B", PLANAR), slices)


def _taps(xp: Backend, weight, slices: int):
    """[O, I / groups, h, w] -> [O, h, w, I / groups], on one grid."""
    return sliced(xp, xp.permute(weight, (0, 2, 3, 1)), (0, 1, 2, 3), slices)


def _grad_taps(xp: Backend, q, gradient, like, weight, how, slices: int):
    """The gradient with respect to a weight: that of the result, a grid for each output, has the scales of q."""
    h, r = sliced(xp, gradient, all_but("C", PLANAR), slices)
    h = [xp.operand_like(each, like) for each in h]
    outputs, inputs, height, width = weight.shape
    shape = outputs, height, width, inputs
    total = product_of_slices(lambda a, b: xp.convolve_with(a, b, shape, *how), q, h)
    return xp.permute(xp.r32(scaled(xp, total, 2 * BITS, xp.reshape(r, (-1, 1, 1, 1)))), (0, 3, 1, 2))


def _work(x, weight) -> int:
    return math.prod(weight.shape) * math.prod(x.shape) // x.shape[1]
