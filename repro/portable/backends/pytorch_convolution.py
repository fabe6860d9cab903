"""Exact convolutions in PyTorch as matrix products.

Operands are integers in slices, [S, ...]: see pytorch_slices.py.
They are those of repro.portable.definitions.convolution. Where a convolution is plain, images are [S, C, H, W, B]: what
meets an element of the kernel is moved by whole rows of memory.
"""

from torch import Tensor

from repro.portable.backends.pytorch_slices import joined, product, products
from repro.portable.definitions.convolution import BHWC, patches, plain, reordered
from repro.portable.definitions.grids import check_length
from repro.portable.definitions.slices import LONGEST
from repro.portable.definitions.xp import Backend


def convolve(xp: Backend, q: Tensor, w: Tensor, *how) -> Tensor:
    """[S, B, H, W, I] and [S, O, h, w, I] -> float64 [B, H', W', O]."""
    check_length(w[0, 0].numel())
    if plain(*how):
        batch, (height, width) = q.shape[-1], w.shape[2:4]
        y = product(_matrix(w), _patches(q, height, width))
        return y.view(len(y), q.shape[2] - height + 1, -1, batch)
    meets, shape = _rows(xp, q, w.shape[2:4], *how)
    y = product(meets, w.flatten(2).transpose(1, 2))
    return reordered(xp, y.view(*shape, -1), BHWC, how[-1])


def convolve_with(xp: Backend, q: Tensor, g: Tensor, shape, *how) -> Tensor:
    """The gradient with respect to a weight of this shape, of that of the result, [S, B, H', W', O]."""
    outputs, height, width, inputs = shape
    if plain(*how):
        each = g.flatten(2)
        check_length(each.shape[2] * xp.ranks.size)
        total = product(_patches(q, height, width), each.transpose(1, 2))
        return total.view(height, inputs, width, outputs).permute(3, 0, 2, 1)
    meets, _ = _rows(xp, q, (height, width), *how)
    each = _images(g, how[-1]).flatten(1, 3)
    check_length(each.shape[1] * xp.ranks.size)
    return product(each.transpose(1, 2), meets).view(outputs, height, width, inputs)


def convolve_back(xp: Backend, g: Tensor, w: Tensor, image, *how) -> Tensor:
    """The gradient with respect to images of this shape, of that of the result, [S, B, H', W', O]."""
    outputs, height, width, inputs = w.shape[1:]
    terms = outputs * height * width
    check_length(terms)
    if plain(*how) and terms <= LONGEST:
        rows, columns, batch = g.shape[2:]
        parts = products(_matrix(w).transpose(1, 2), g.flatten(2))
        parts = parts.view(-1, height, inputs, width, rows, columns * batch)
        total = parts.new_zeros(len(parts), inputs, rows + height - 1, (columns + width - 1) * batch)
        for i in range(height):
            for j in range(width):
                total[:, :, i : i + rows, j * batch : (j + columns) * batch] += parts[:, i, :, j]
        return joined(total, terms).unflatten(2, (-1, batch))
    stride, padding, dilation, _, layout = how
    size = [image[layout.index(name)] for name in BHWC]
    each = _images(g, layout)
    parts = product(each.flatten(1, 3), w.flatten(2)).view(*each.shape[1:4], height, width, inputs)
    total = parts.new_zeros(size[0], size[1] + 2 * padding[0], size[2] + 2 * padding[1], inputs)
    for i in range(height):
        for j in range(width):
            rows, columns = (
                slice(place * hole, place * hole + step * (length - 1) + 1, step)
                for place, hole, step, length in zip((i, j), dilation, stride, parts.shape[1:3], strict=True)
            )
            total[:, rows, columns].add_(parts[:, :, :, i, j])
    total = total[:, padding[0] : padding[0] + size[1], padding[1] : padding[1] + size[2]]
    return reordered(xp, total, BHWC, layout)


def _matrix(w: Tensor) -> Tensor:
    """[S, O, h, w, I] -> [S, O, h * I * w], in the order of _patches."""
    return w.transpose(3, 4).flatten(2)


def _patches(x: Tensor, height: int, width: int) -> Tensor:
    """[S, C, H, W, B] -> [S, h * C * w, rows * columns * B]: what meets each element of a kernel."""
    slices, channels, rows, columns, batch = x.shape
    x = x.contiguous()
    piece, channel, row, column, _ = x.stride()
    shape = (slices, height, channels, width, rows - height + 1, (columns - width + 1) * batch)
    return x.as_strided(shape, (piece, row, channel, column, row, 1)).reshape(slices, height * channels * width, -1)


def _images(x: Tensor, layout: str) -> Tensor:
    """[S, ...] -> [S, B, H, W, C]."""
    return x.permute(0, *(1 + layout.index(name) for name in BHWC))


def _rows(
    xp: Backend, q: Tensor, kernel, stride, padding, dilation, groups: int, layout: str
) -> tuple[Tensor, tuple[int, ...]]:
    """The patches that meet a kernel, as rows [S, B * H' * W', h * w * I], and B, H', W'."""
    images = _images(q, layout)
    meets = patches(xp, images.flatten(0, 1), kernel, stride, padding, dilation, groups)
    return meets.reshape(len(q), -1, meets.shape[-1]), (images.shape[1], *meets.shape[2:4])
