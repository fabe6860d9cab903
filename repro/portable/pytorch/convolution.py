"""Convolution in PyTorch as matrix products, and its two gradients, in the type that they are given.

Images are [H * C * W + 1, B], the last row being 1, and kernels [O, h, C * w + 1]: see operations.py. Portable numerics
give them numbers whose sums are exact.
"""

import torch
from torch import Tensor


def patches(x: Tensor, image: torch.Size, kernel: torch.Size) -> Tensor:
    """What each row of the result is made of: [H * C * W + 1, B] -> [rows, h * (C * w + 1), columns * B].

    Of images [B, C, H, W] and a kernel [O, C, h, w]. Neighboring rows of the result share memory.
    """
    (batch, channels, rows, columns), (height, width) = image, kernel[2:]
    if rows == columns == 1:
        return x[None]
    size = rows - height + 1, columns - width + 1
    column, channel, row = batch, columns * batch, channels * columns * batch
    shifted = x.as_strided((rows, channels, width, size[1], batch), (row, channel, column, column, 1))
    found = x.new_empty(rows, channels * width + 1, size[1], batch)
    found[:, :-1].view(shifted.shape).copy_(shifted)
    found[:, -1] = x[-1]
    row = found.stride(0)
    return found.as_strided((size[0], height * (channels * width + 1), size[1] * batch), (row, size[1] * batch, 1))


def product(meets: Tensor, weights: Tensor) -> Tensor:
    """The convolution, [rows, O, columns * B], of patches with a kernel."""
    return weights.flatten(1).expand(len(meets), -1, -1) @ meets


def weights_gradient(gradient: Tensor, meets: Tensor) -> Tensor:
    """The gradient with respect to a kernel, [O, h * (C * w + 1)], of that of the result, [rows, O, columns * B]."""
    return (gradient @ meets.transpose(1, 2)).sum(0)


def spread(gradient: Tensor, weights: Tensor, image: torch.Size, kernel: torch.Size) -> Tensor:
    """The gradient with respect to x, [B, C, H, W], of that of the result, [rows, O, columns * B].

    What overlaps is added, along one axis and then the other; these sums, too, are exact.
    """
    (batch, channels, rows, columns), (height, width) = image, kernel[2:]
    if rows == columns == 1:
        return (weights[:, 0, :-1].T @ gradient[0]).T.view(image)
    size = len(gradient), gradient.shape[2]
    across = gradient.new_zeros(rows, channels * width, size[1])
    for i in range(height):
        across[i : i + size[0]].baddbmm_(weights[:, i, :-1].T.expand(size[0], -1, -1), gradient)
    across = across.view(rows, channels, width, size[1])
    total = gradient.new_zeros(rows, channels, columns * batch)
    for j in range(width):
        total[:, :, j * batch : j * batch + size[1]].add_(across[:, :, j])
    return total.unflatten(2, (columns, batch)).permute(3, 1, 0, 2)
