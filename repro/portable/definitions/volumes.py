"""Convolution of volumes, as sums of those of their planes.

Volumes are [B, C, D, H, W], weights [O, I / groups, d, h, w]. Each element of a kernel along the depth makes an exact
convolution of planes; the sums of these are exact, too.
"""

import math
from dataclasses import dataclass

from repro.portable.definitions.convolution import placed
from repro.portable.definitions.grids import (
    Multiply,
    check_length,
    operand_bits,
    product_of_slices,
    rounded,
    sliced,
)
from repro.portable.definitions.xp import Backend

Triple = tuple[int, int, int]
LAYOUT = "BCHW"
SAMPLE, CHANNEL, ALL = (1, 2, 3, 4), (0, 2, 3, 4), (0, 1, 2, 3, 4)
"""The axes of which each sample, each channel, and a whole weight has a grid."""


@dataclass(frozen=True)
class VolumeSteps:
    """The steps of a kernel over volumes."""

    stride: Triple
    padding: Triple
    dilation: Triple
    groups: int

    @property
    def planes(self):
        """The two-dimensional geometry, for a backend."""
        return self.stride[1:], self.padding[1:], self.dilation[1:], self.groups, LAYOUT


def forward(xp: Backend, x, weight, bias, how: VolumeSteps, slices: int = 1):
    """A grid for each sample, one for the weight."""
    plus = None if bias is None else xp.reshape(bias, (-1, 1, 1, 1))
    return _product(xp, lambda a, b: convolve(xp, a, b, how), x, weight, _terms(weight, 0), slices, plus)


def backward(xp: Backend, x, weight, gradient, how: VolumeSteps, needs: tuple[bool, bool], slices: int = 1):
    """The gradients of forward with respect to x and to the weight, each if needed."""
    grad_x = grad_w = None
    if needs[0]:
        grad_x = transposed_forward(xp, gradient, weight, how, tuple(x.shape), slices)
    if needs[1]:
        grad_w = _grad_weight(xp, x, gradient, weight, how, slices)
    return grad_x, grad_w


def transposed_forward(xp: Backend, x, weight, how: VolumeSteps, image: tuple[int, ...], slices: int = 1):
    """x [B, I, ...], weight [I, O / groups, ...] -> volumes of this shape: a convolution's gradient, the other way."""
    return _product(xp, lambda a, b: convolve_back(xp, a, b, image, how), x, weight, _terms(weight, 1), slices)


def transposed_backward(xp: Backend, x, weight, gradient, how: VolumeSteps, needs: tuple[bool, bool], slices: int = 1):
    """The gradients of transposed_forward with respect to x and to the weight, each if needed."""
    grad_x = grad_w = None
    if needs[0]:
        grad_x = forward(xp, gradient, weight, None, how, slices)
    if needs[1]:
        grad_w = _grad_weight(xp, gradient, x, weight, how, slices)
    return grad_x, grad_w


def _terms(weight, outer: int) -> int:
    """Products in a sum over all of a weight but this axis."""
    return math.prod(weight.shape) // weight.shape[outer]


def _product(xp: Backend, multiply: Multiply, x, weight, terms: int, slices: int, plus=None):
    """A sum of products: x has a grid for each sample, the weight has one."""
    bits = operand_bits(x, terms)
    (q, p), (w, s) = sliced(xp, x, SAMPLE, slices, bits=bits), sliced(xp, weight, ALL, slices, bits=bits)
    return rounded(xp, product_of_slices(multiply, q, w, bits), 2 * bits, p, s, plus=plus)


def _grad_weight(xp: Backend, x, gradient, weight, how: VolumeSteps, slices: int):
    """The gradient with respect to a weight: that of the result, a grid for each output, has the scales of x."""
    bits = operand_bits(x, _terms(gradient, 1))
    q, p = sliced(xp, x, SAMPLE, slices, bits=bits)
    h, u = sliced(xp, gradient * p, CHANNEL, slices, bits=bits)
    total = product_of_slices(lambda a, b: convolve_with(xp, a, b, tuple(weight.shape), how), q, h, bits)
    return rounded(xp, total, 2 * bits, xp.reshape(u, (-1, 1, 1, 1, 1)))


# --- integers ---------------------------------------------------------------------------------------------------------


def convolve(xp: Backend, q, w, how: VolumeSteps):
    """The convolution of integers, float64, exact."""
    check_length(math.prod(w.shape[1:]))
    total = None
    for part, taps in _planes(xp, q, w.shape[2], how, _weights(xp, w)):
        y = xp.convolve(*_operands(xp, part, taps, how), *how.planes)
        total = y if total is None else total + y
    return _volumes(xp, total, q.shape[0])


def convolve_back(xp: Backend, g, w, image, how: VolumeSteps):
    """The exact gradient with respect to volumes of this shape, of integers, that of the result being g."""
    batch, inputs, depth, height, width = image
    check_length(math.prod(w.shape) // w.shape[1])
    rows, total = g.shape[2], None
    for tap, taps in enumerate(_weights(xp, w)):
        a, b = _operands(xp, _merged(xp, g), taps, how)
        part = xp.convolve_back(a, b, (batch * rows, inputs, height, width), *how.planes)
        part = xp.reshape(_volumes(xp, part, batch), (batch, inputs, rows, height * width, 1))
        begin = (tap * how.dilation[0], 0)
        image_of_rows = (batch, depth, height * width, 1)
        part = placed(xp, part, image_of_rows, (how.stride[0], 1), (how.padding[0], 0), begin)
        total = part if total is None else total + part
    return xp.reshape(total, image)


def convolve_with(xp: Backend, q, g, shape, how: VolumeSteps):
    """The exact gradient with respect to a weight of this shape, of integers, that of the result being g."""
    outputs, inputs, depth, height, width = shape
    parts = []
    for part, planes in _planes(xp, q, depth, how, [_merged(xp, g)] * depth):
        a, b = _operands(xp, part, planes, how)
        parts.append(xp.convolve_with(a, b, (outputs, height, width, inputs), *how.planes))
    return xp.permute(xp.stack(parts, 1), (0, 4, 1, 2, 3))


def _operands(xp: Backend, a, b, how: VolumeSteps):
    return xp.operands(xp.f32(a), xp.f32(b), work=0, groups=how.groups, layout=LAYOUT)


def _weights(xp: Backend, w):
    """[O, I / groups, d, h, w] -> of each element along the depth [O, h, w, I / groups]."""
    return [xp.permute(w[:, :, tap], (0, 2, 3, 1)) for tap in range(w.shape[2])]


def _planes(xp: Backend, q, depth: int, how: VolumeSteps, others):
    """The planes that each element of a kernel along the depth meets, with what belongs to it."""
    step, edge, hole = how.stride[0], how.padding[0], how.dilation[0]
    q = xp.pad(q, ((0, 0), (0, 0), (edge, edge), (0, 0), (0, 0)))
    rows = (q.shape[2] - hole * (depth - 1) - 1) // step + 1
    for tap, other in enumerate(others):
        yield _merged(xp, q[:, :, tap * hole : tap * hole + step * (rows - 1) + 1 : step]), other


def _merged(xp: Backend, x):
    """[B, C, D, H, W] -> [B * D, C, H, W]."""
    batch, channels, depth, height, width = x.shape
    return xp.reshape(xp.permute(x, (0, 2, 1, 3, 4)), (batch * depth, channels, height, width))


def _volumes(xp: Backend, x, batch: int):
    """[B * D, C, H, W] -> [B, C, D, H, W]."""
    merged, channels, height, width = x.shape
    return xp.permute(xp.reshape(x, (batch, merged // batch, channels, height, width)), (0, 2, 1, 3, 4))
