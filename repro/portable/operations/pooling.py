"""Pooling of images [B, H, W, C]."""

from repro.portable.operations.convolution import Pair, placed
from repro.portable.operations.grids import Operation, count, exact_mean

ONE = (1, 1)


def _max_forward(X, x, kernel: Pair, stride: Pair, padding: Pair):
    """The maximum of each window, NaN where it holds one -> [B, H', W', C]. What lies in the padding does not count."""
    best = first = None
    for place, part in enumerate(_windows(X, X.pad(x, _edges(padding), -X.inf), kernel, stride)):
        if best is None:
            best, first = part, X.where(part == part, 0, 0)
        else:
            better = (part > best) | (part != part)  # in no framework's own order of NaN
            best, first = X.where(better, part, best), X.where(better, place, first)
    return best, (first,)


def _max_backward(X, saved, gradient, needs, shapes, kernel: Pair, stride: Pair, padding: Pair):
    """To the first of equals, row by row; where windows overlap, in the order of a window's places."""
    (first,) = saved
    return (_spread(X, lambda place: X.where(first == place, gradient, 0.0), shapes[0], kernel, stride, padding),)


max_pool = Operation(_max_forward, _max_backward)


def _average_forward(X, x, kernel: Pair, stride: Pair, padding: Pair):
    """The mean of each window -> [B, H', W', C], added in the order of its places; padding counts as zeros."""
    first, *others = _windows(X, X.pad(x, _edges(padding), 0.0), kernel, stride)
    total = X.f64(first)
    for part in others:
        total = total + X.f64(part)
    return X.r32(total * (1.0 / (kernel[0] * kernel[1]))), ()


def _average_backward(X, saved, gradient, needs, shapes, kernel: Pair, stride: Pair, padding: Pair):
    each = X.r32(X.f64(gradient) * (1.0 / (kernel[0] * kernel[1])))
    return (_spread(X, lambda _: each, shapes[0], kernel, stride, padding),)


average_pool = Operation(_average_forward, _average_backward)


def _mean_forward(X, x, axes):
    """The exact mean over these axes, which stay with size 1."""
    return exact_mean(X, x, axes), ()


def _mean_backward(X, saved, gradient, needs, shapes, axes):
    each = X.r32(X.f64(gradient) * (1.0 / count(X, shapes[0], axes)))
    return (X.broadcast_to(each, shapes[0]),)


mean = Operation(_mean_forward, _mean_backward)


def _edges(padding: Pair):
    return ((0, 0), (padding[0], padding[0]), (padding[1], padding[1]), (0, 0))


def _windows(X, x, kernel: Pair, stride: Pair):
    """What lies at each place of all windows, in the order of rows."""
    height, width = x.shape[1:3]
    rows, columns = (
        (size - length) // step for size, length, step in zip((height, width), kernel, stride, strict=True)
    )
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            down, across = i + stride[0] * rows + 1, j + stride[1] * columns + 1
            yield x[:, i : down : stride[0], j : across : stride[1]]


def _spread(X, at, image, kernel: Pair, stride: Pair, padding: Pair):
    """What `at` gives for each place of a window, added to where it lay in the images, each sum rounded to float32."""
    total = None
    for place in range(kernel[0] * kernel[1]):
        part = placed(X, at(place), image, stride, padding, divmod(place, kernel[1]))
        total = part if total is None else X.r32(X.f64(total) + X.f64(part))
    return total
