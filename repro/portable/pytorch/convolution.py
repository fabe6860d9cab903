"""Convolution in PyTorch as matrix products, and its two gradients, of integers in float64: exact.

Images are [C, H, W, B] and kernels [O, h, w, I]. In memory images best lie as [H, C, W, B]: then a row of the result is
one matrix product, and what it is made of is moved by whole rows of memory.
"""

from torch import Tensor


def correlate(x: Tensor, kernel: Tensor) -> Tensor:
    """[I, H, W, B] and [O, h, w, I] -> [O, H - h + 1, W - w + 1, B]."""
    outputs, height, width, _ = kernel.shape
    weights = kernel.transpose(2, 3).reshape(outputs, -1)  # [O, h * I * w]
    meets = _patches(x, height, width)
    y = weights.expand(len(meets), -1, -1) @ meets
    return y.unflatten(2, (-1, x.shape[3])).transpose(0, 1)


def correlate_with(x: Tensor, gradient: Tensor) -> Tensor:
    """The gradient of correlate with respect to its kernel, of that with respect to its result [O, R, C, B]."""
    outputs, rows, columns, _ = gradient.shape
    height, width = x.shape[1] - rows + 1, x.shape[2] - columns + 1
    each = gradient.transpose(0, 1).reshape(rows, outputs, -1)
    product = (each @ _patches(x, height, width).transpose(1, 2)).sum(0)
    return product.view(outputs, height, len(x), width).transpose(2, 3)


def spread(gradient: Tensor, kernel: Tensor) -> Tensor:
    """The gradient of correlate with respect to x. What overlaps is added, along one axis and then the other."""
    outputs, height, width, inputs = kernel.shape
    _, rows, columns, batch = gradient.shape
    each = gradient.transpose(0, 1).reshape(rows, outputs, -1)
    weights = kernel.permute(1, 3, 2, 0).reshape(height, inputs * width, outputs)
    across = gradient.new_zeros(rows + height - 1, inputs * width, columns * batch)
    for i in range(height):
        across[i : i + rows].baddbmm_(weights[i].expand(rows, -1, -1), each)
    across = across.view(-1, inputs, width, columns * batch)
    total = gradient.new_zeros(len(across), inputs, (columns + width - 1) * batch)
    for j in range(width):
        total[:, :, j * batch : (j + columns) * batch].add_(across[:, :, j])
    return total.unflatten(2, (-1, batch)).transpose(0, 1)


def _patches(x: Tensor, height: int, width: int) -> Tensor:
    """What each row of the result is made of: [C, H, W, B] -> [rows, h * C * w, columns * B].

    Neighboring rows of the result share memory.
    """
    channels, rows, columns, batch = x.shape
    x = x.transpose(0, 1).contiguous()
    across = columns - width + 1
    column, channel, row = batch, columns * batch, channels * columns * batch
    shifted = x.as_strided((rows, channels, width, across, batch), (row, channel, column, column, 1))
    found = shifted.contiguous().view(rows, channels * width, across * batch)
    row = found.stride(0)
    return found.as_strided((rows - height + 1, height * found.shape[1], across * batch), (row, found.stride(1), 1))
