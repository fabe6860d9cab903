"""Pooling of images [B, H, W, C]."""

from repro.portable.definitions.convolution import Pair, placed
from repro.portable.definitions.grids import Operation, count, exact_mean
from repro.portable.definitions.xp import Backend

ONE = (1, 1)


def _max_forward(xp: Backend, x, kernel: Pair, stride: Pair, padding: Pair):
    """The maximum of each window, NaN where it holds one -> [B, H', W', C]. What lies in the padding does not count."""
    best = first = None
    for place, part in enumerate(_windows(xp, xp.pad(x, _edges(padding), -xp.inf), kernel, stride)):
        if best is None:
            best, first = part, xp.where(part == part, 0, 0)
        else:
            better = (part > best) | (part != part)  # in no framework's own order of NaN
            best, first = xp.where(better, part, best), xp.where(better, place, first)
    return best, (first,)


def _max_backward(xp: Backend, saved, gradient, needs, shapes, kernel: Pair, stride: Pair, padding: Pair):
    """To the first of equals, row by row; where windows overlap, in the order of a window's places."""
    (first,) = saved
    return (_spread(xp, lambda place: xp.where(first == place, gradient, 0.0), shapes[0], kernel, stride, padding),)


max_pool = Operation(_max_forward, _max_backward)


def _average_forward(xp: Backend, x, kernel: Pair, stride: Pair, padding: Pair):
    """The mean of each window -> [B, H', W', C], added in the order of its places; padding counts as zeros."""
    first, *others = _windows(xp, xp.pad(x, _edges(padding), 0.0), kernel, stride)
    total = xp.f64(first)
    for part in others:
        total = total + xp.f64(part)
    return xp.r32(total * (1.0 / (kernel[0] * kernel[1]))), ()


def _average_backward(xp: Backend, saved, gradient, needs, shapes, kernel: Pair, stride: Pair, padding: Pair):
    each = xp.r32(xp.f64(gradient) * (1.0 / (kernel[0] * kernel[1])))
    return (_spread(xp, lambda _: each, shapes[0], kernel, stride, padding),)


average_pool = Operation(_average_forward, _average_backward)


def _mean_forward(xp: Backend, x, axes):
    """The exact mean over these axes, which stay with size 1."""
    return exact_mean(xp, x, axes), ()


def _mean_backward(xp: Backend, saved, gradient, needs, shapes, axes):
    each = xp.r32(xp.f64(gradient) * (1.0 / count(xp, shapes[0], axes)))
    return (xp.broadcast_to(each, shapes[0]),)


mean = Operation(_mean_forward, _mean_backward)


def _edges(padding: Pair):
    return ((0, 0), (padding[0], padding[0]), (padding[1], padding[1]), (0, 0))


def _windows(xp: Backend, x, kernel: Pair, stride: Pair):
    """Yields the elements at each place of all windows, in the order of rows."""
    height, width = x.shape[1:3]
    rows, columns = (
        (size - length) // step for size, length, step in zip((height, width), kernel, stride, strict=True)
    )
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            down, across = i + stride[0] * rows + 1, j + stride[1] * columns + 1
            yield x[:, i : down : stride[0], j : across : stride[1]]


def _spread(xp: Backend, at, image, kernel: Pair, stride: Pair, padding: Pair):
    """Adds what `at` gives for each place of a window to where it lay in the images, each sum rounded to float32."""
    total = None
    for place in range(kernel[0] * kernel[1]):
        part = placed(xp, at(place), image, stride, padding, divmod(place, kernel[1]))
        total = part if total is None else xp.r32(xp.f64(total) + xp.f64(part))
    return total
