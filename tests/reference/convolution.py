"""Reference: convolution, pooling, means of images."""

from collections.abc import Iterator, Sequence

import numpy as np

from reference.arithmetic import Array, Pair, exact_mean, exact_sum, f64, grid, halves, length, product_of_halves, r32
from repro.portable.numbers.constants import BITS


def sizes(image: Sequence[int], kernel: Sequence[int], stride: Pair, padding: Pair, dilation: Pair = (1, 1)) -> Pair:
    """The number of places of a kernel [h, w] in an image [H, W], down and across."""
    down, across = ((image[k] + 2 * padding[k] - dilation[k] * (kernel[k] - 1) - 1) // stride[k] + 1 for k in (0, 1))
    return down, across


def meetings(
    image: Sequence[int], kernel: Sequence[int], stride: Pair, padding: Pair, dilation: Pair = (1, 1)
) -> Iterator[tuple[Pair, Pair, Pair]]:
    """Yields where an element of a kernel meets one of the image: in the kernel, in the result, and in the image.

    By the kernel's elements, row by row. What lies in the padding is left out.
    """
    rows, columns = sizes(image, kernel, stride, padding, dilation)
    for i, j in np.ndindex(kernel[0], kernel[1]):
        for r, c in np.ndindex(rows, columns):
            y, x = r * stride[0] + i * dilation[0] - padding[0], c * stride[1] + j * dilation[1] - padding[1]
            if 0 <= y < image[0] and 0 <= x < image[1]:
                yield (i, j), (r, c), (y, x)


def channels(weight: Array, groups: int) -> Iterator[tuple[slice, slice]]:
    """The outputs and the inputs of each group."""
    outputs, inputs = len(weight) // groups, weight.shape[3]
    for k in range(groups):
        yield slice(k * outputs, (k + 1) * outputs), slice(k * inputs, (k + 1) * inputs)


def convolution(x, weight, bias, stride: Pair, padding: Pair, dilation: Pair, groups: int) -> Array:
    """x [B, H, W, I], weight [O, h, w, I / groups], bias [O] -> [B, H', W', O].

    A grid for each sample, one for the weight.
    """
    (q, p), (w, s) = grid(x, (1, 2, 3)), grid(weight, (0, 1, 2, 3))
    y = convolved(q, w, stride, padding, dilation, groups) * (p * s * 2.0 ** (-2 * BITS))
    return r32(y if bias is None else y + f64(bias))


def convolved(q: Array, w: Array, stride: Pair, padding: Pair, dilation: Pair, groups: int) -> Array:
    """The convolution of integers."""
    image, kernel = q.shape[1:3], w.shape[1:3]
    total = np.zeros((len(q), *sizes(image, kernel, stride, padding, dilation), len(w)), np.int64)
    for (i, j), (r, c), (row, column) in meetings(image, kernel, stride, padding, dilation):
        for outs, ins in channels(w, groups):
            total[:, r, c, outs] += q[:, row, column, ins] @ w[outs, i, j].T
    return total


def convolution_gradients(x, weight, bias, gradient, stride: Pair, padding: Pair, dilation: Pair, groups: int):
    """As those of linear, with samples for rows."""
    (q, p), (w, s), (g, r) = grid(x, (1, 2, 3)), grid(weight, (0, 1, 2, 3)), grid(gradient, (1, 2, 3))
    h, t = grid(gradient * p, (0, 1, 2))
    grad_x = convolved_back(g, w, x.shape, stride, padding, dilation, groups)
    grad_weight = convolved_with(q, h, weight, stride, padding, dilation, groups)
    return (
        r32(grad_x * (r * s * 2.0 ** (-2 * BITS))),
        r32(grad_weight * (t.reshape(-1, 1, 1, 1) * 2.0 ** (-2 * BITS))),
        None if bias is None else r32(exact_sum(gradient, (0, 1, 2)))[0, 0, 0],
    )


def convolved_back(g: Array, w: Array, shape, stride: Pair, padding: Pair, dilation: Pair, groups: int) -> Array:
    """The gradient of `convolved` with respect to q, of this shape."""
    result = np.zeros(shape, np.int64)
    for (i, j), (y, c), (row, column) in meetings(shape[1:3], w.shape[1:3], stride, padding, dilation):
        for outs, ins in channels(w, groups):
            result[:, row, column, ins] += g[:, y, c, outs] @ w[outs, i, j]
    return result


def convolved_with(q: Array, g: Array, weight: Array, stride: Pair, padding: Pair, dilation: Pair, groups: int):
    """The gradient with respect to w, of the shape of a weight."""
    result = np.zeros(weight.shape, np.int64)
    for (i, j), (y, c), (row, column) in meetings(q.shape[1:3], weight.shape[1:3], stride, padding, dilation):
        for outs, ins in channels(weight, groups):
            result[outs, i, j] += g[:, y, c, outs].T @ q[:, row, column, ins]
    return result


def convolution_highest(x, weight, bias, *how):
    """convolution with operands in two slices; how: stride, padding, dilation, groups."""
    (q, p), (w, s) = halves(x, (1, 2, 3)), halves(weight, (0, 1, 2, 3))
    y = product_of_halves(lambda a, b: convolved(a, b, *how), q, w) * (p * s * 2.0 ** (-2 * BITS))
    return r32(y if bias is None else y + f64(bias))


def convolution_gradients_highest(x, weight, gradient, *how):
    """Those with respect to x and to the weight."""
    (q, p), (w, s), (g, r) = halves(x, (1, 2, 3)), halves(weight, (0, 1, 2, 3)), halves(gradient, (1, 2, 3))
    h, t = halves(gradient * p, (0, 1, 2))
    grad_x = product_of_halves(lambda a, b: convolved_back(a, b, x.shape, *how), g, w)
    grad_weight = product_of_halves(lambda a, b: convolved_with(a, b, weight, *how), q, h)
    return (
        r32(grad_x * (r * s * 2.0 ** (-2 * BITS))),
        r32(grad_weight * (t.reshape(-1, 1, 1, 1) * 2.0 ** (-2 * BITS))),
    )


def max_pool(x: Array, kernel: Pair, stride: Pair, padding: Pair) -> Array:
    """x [B, H, W, C] -> [B, H', W', C]: NaN where a window has one."""
    return _largest(x, kernel, stride, padding)[0]


def _largest(x: Array, kernel: Pair, stride: Pair, padding: Pair) -> tuple[Array, Array]:
    """The largest of each window, and its place there: of equals the first, of NaN the last."""
    best = np.full((len(x), *sizes(x.shape[1:3], kernel, stride, padding), x.shape[3]), -np.inf, np.float32)
    first = np.zeros(best.shape, int)
    for (i, j), (r, c), (row, column) in meetings(x.shape[1:3], kernel, stride, padding):
        here = x[:, row, column]
        better = (here > best[:, r, c]) | np.isnan(here)
        best[:, r, c] = np.where(better, here, best[:, r, c])
        first[:, r, c] = np.where(better, i * kernel[1] + j, first[:, r, c])
    return best, first


def max_pool_gradients(x: Array, gradient: Array, kernel: Pair, stride: Pair, padding: Pair):
    _, first = _largest(x, kernel, stride, padding)
    places = [np.where(first == place, gradient, np.float32(0)) for place in range(kernel[0] * kernel[1])]
    return (_spread(places, x.shape, kernel, stride, padding),)


def average_pool(x: Array, kernel: Pair, stride: Pair, padding: Pair) -> Array:
    """x [B, H, W, C] -> [B, H', W', C]: float64 sums, in the order of a window's places; padding is 0."""
    total = np.zeros((len(x), *sizes(x.shape[1:3], kernel, stride, padding), x.shape[3]))
    for _, (r, c), (row, column) in meetings(x.shape[1:3], kernel, stride, padding):
        total[:, r, c] += x[:, row, column]
    return r32(total * (1.0 / (kernel[0] * kernel[1])))


def average_pool_gradients(x: Array, gradient: Array, kernel: Pair, stride: Pair, padding: Pair):
    places = kernel[0] * kernel[1]
    return (_spread([r32(f64(gradient) * (1.0 / places))] * places, x.shape, kernel, stride, padding),)


def _spread(places: list[Array], shape: tuple[int, ...], kernel: Pair, stride: Pair, padding: Pair) -> Array:
    """Adds what each place of all windows gives to the image below it, one place after the other, each sum rounded."""
    parts = np.zeros((len(places), *shape), np.float32)
    for (i, j), (r, c), (row, column) in meetings(shape[1:3], kernel, stride, padding):
        place = i * kernel[1] + j
        parts[place, :, row, column] = places[place][:, r, c]
    total = parts[0]
    for part in parts[1:]:
        total = r32(f64(total) + f64(part))
    return total


def mean(x: Array, axes: tuple[int, ...]) -> Array:
    """Over these axes, which stay with size 1."""
    return exact_mean(x, axes)


def mean_gradients(x: Array, gradient: Array, axes: tuple[int, ...]):
    return (np.broadcast_to(r32(f64(gradient) * (1.0 / length(x, axes))), x.shape),)
