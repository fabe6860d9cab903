"""Exact convolutions of integers by int8 products: see int8.py. Operands come as slices, int8 [3, ...]."""

import torch
from torch import Tensor

from repro.portable.operations.convolution import BHWC, patches, placed, plain, reordered
from repro.portable.operations.grids import check_length
from repro.portable.pytorch import int8


def convolve(X, q: Tensor, w: Tensor, *how) -> Tensor:
    """See repro.portable.operations.convolution.convolve."""
    check_length(w[0, 0].numel())
    matrix = w.flatten(2)
    if plain(*how):
        batch, (height, width) = q.shape[-1], w.shape[2:4]
        y = int8.product(_kernel_last(w), _patches(q, height, width))
        return y.view(len(y), q.shape[2] - height + 1, -1, batch)
    meets, shape = _rows(X, q, w.shape[2:4], *how)
    y = int8.product(meets, matrix.transpose(1, 2))
    return reordered(X, y.view(*shape, -1), BHWC, how[-1])


def convolve_with(X, q: Tensor, g: Tensor, shape, *how) -> Tensor:
    """See repro.portable.operations.convolution.convolve_with."""
    outputs, height, width, inputs = shape
    if plain(*how):
        each = g.flatten(2)
        check_length(each.shape[2] * X.ranks.size)
        total = int8.product(_patches(q, height, width), each.transpose(1, 2))
        return total.view(height, inputs, width, outputs).permute(3, 0, 2, 1)
    meets, _ = _rows(X, q, (height, width), *how)
    each = _images(X, g, how[-1]).flatten(1, 3)
    check_length(each.shape[1] * X.ranks.size)
    return int8.product(each.transpose(1, 2), meets).view(outputs, height, width, inputs)


def convolve_back(X, g: Tensor, w: Tensor, image, *how) -> Tensor:
    """See repro.portable.operations.convolution.convolve_back."""
    stride, padding, dilation, _, layout = how
    outputs, height, width, inputs = w.shape[1:]
    check_length(outputs * height * width)
    if plain(*how):
        rows, columns, batch = g.shape[2:]
        parts = int8.product(_kernel_last(w).transpose(1, 2), g.flatten(2))
        parts = parts.view(height, inputs, width, rows, columns * batch)
        total = parts.new_zeros(inputs, rows + height - 1, (columns + width - 1) * batch)
        for i in range(height):
            for j in range(width):
                total[:, i : i + rows, j * batch : (j + columns) * batch] += parts[i, :, j]
        return total.unflatten(2, (-1, batch))
    image = tuple(image[layout.index(name)] for name in BHWC)
    each = _images(X, g, layout)
    parts = int8.product(each.flatten(1, 3), w.flatten(2)).view(*each.shape[1:4], height, width, inputs)
    places = [(i, j) for i in range(height) for j in range(width)]
    found = [
        placed(X, parts[:, :, :, i, j], image, stride, padding, (i * dilation[0], j * dilation[1])) for i, j in places
    ]
    return reordered(X, torch.stack(found).sum(0) if len(found) > 1 else found[0], BHWC, layout)


def _kernel_last(w: Tensor) -> Tensor:
    """[3, O, h, w, I] -> [3, O, h * I * w], in the order of _patches."""
    return w.transpose(3, 4).flatten(2)


def _patches(x: Tensor, height: int, width: int) -> Tensor:
    """[3, C, H, W, B] -> [3, h * C * w, rows * columns * B]: what meets each element of a kernel."""
    _, channels, rows, columns, batch = x.shape
    x = x.contiguous()
    piece, channel, row, column, _ = x.stride()
    shape = (3, height, channels, width, rows - height + 1, (columns - width + 1) * batch)
    return x.as_strided(shape, (piece, row, channel, column, row, 1)).reshape(3, height * channels * width, -1)


def _images(X, x: Tensor, layout: str) -> Tensor:
    """[3, ...] -> [3, B, H, W, C]."""
    return torch.stack([reordered(X, part, layout, BHWC) for part in x])


def _rows(X, q: Tensor, kernel, stride, padding, dilation, groups: int, layout: str) -> tuple[Tensor, tuple[int, ...]]:
    """What meets each element of a kernel, int8 [3, B * H' * W', h * w * I], and B, H', W'."""
    images = _images(X, q, layout)
    meets = patches(X, images.flatten(0, 1), kernel, stride, padding, dilation, 1)
    shape = (images.shape[1], *meets.shape[2:4])
    return meets.view(3, -1, meets.shape[-1]), shape
