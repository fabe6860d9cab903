"""Normalization: of rows (layer and group norm), over the batch (batch norm), by the root of squares (RMS norm)."""

from repro.portable import tables
from repro.portable.constants import BITS, MEAN_BITS
from repro.portable.operations.grids import Operation, check_length, count, exact_dot, exact_mean, quantize, scaled


def _forward(X, x, axes, eps: float, center: bool, batch: bool):
    """(x - mean) / sqrt(variance + eps) along the axes; without `center` x / sqrt(mean of squares + eps).

    Returns that, the mean (of which there is none without `center`) and the variance, with axes of size 1; only the
    first has a gradient. With `batch` the samples lie along the axes.
    """
    terms = count(X, x.shape, axes, batch)
    check_length(terms)
    if center:
        q, p = quantize(X, x, axes, MEAN_BITS, batch)
        total = X.sum(q, axes)
        middle = X.rint((X.total(total) if batch else total) * (1.0 / terms))
        away, unit = X.f32(X.f64(q) - middle), X.f64(p) * 2.0**-MEAN_BITS  # integers below 2^24: nothing rounds
        mean = X.r32(middle * unit)
    else:
        away, unit = x, 1.0
    q, p = quantize(X, away, axes, batch=batch)
    squares = X.sum(X.f64(q) * X.f64(q), axes)
    squares = scaled(X, X.total(squares) if batch else squares, 2 * BITS, p, p)
    variance = X.r32(squares * (unit * unit) * (1.0 / terms))
    root = X.r32(X.sqrt(X.f64(variance) + eps))  # rounded, or XLA would make one operation of this and the next
    inverse = X.r32(1.0 / X.f64(root))
    y = X.r32(X.f64(away) * (unit * X.f64(inverse)))
    return ((y, mean, variance) if center else (y, variance)), (y, inverse)


def _backward(X, saved, gradient, needs, shapes, axes, eps: float, center: bool, batch: bool):
    """(g - mean(g) - y mean(g y)) inverse; without `center` the first mean is left out."""
    y, inverse = saved
    share = 1.0 / count(X, y.shape, axes, batch)
    along = X.r32(exact_dot(X, gradient, y, axes, batch) * share)
    rest = X.f64(gradient)
    if center:
        rest = rest - X.f64(exact_mean(X, gradient, axes, batch))
    return (X.r32((rest - X.f64(y) * X.f64(along)) * X.f64(inverse)),)


normalize = Operation(_forward, _backward)


def _fixed_forward(X, x, mean, variance, eps: float):
    """(x - mean) / sqrt(variance + eps) for the last axis of x; mean and variance, both [C], have no gradient."""
    inverse = X.r32(1.0 / X.f64(X.r32(X.sqrt(X.f64(variance) + eps))))
    return X.r32(X.f64(X.r32(X.f64(x) - X.f64(mean))) * X.f64(inverse)), (inverse,)


def _fixed_backward(X, saved, gradient, needs, shapes, eps: float):
    return X.r32(X.f64(gradient) * X.f64(saved[0])), None, None


normalize_by = Operation(_fixed_forward, _fixed_backward)


def moving(X, old, new, momentum: float, factor: float = 1.0):
    """A moving average: (1 - momentum) old + momentum new, with new times a factor rounded first.

    Both shares are rounded to float32, so that the products are exact.
    """
    new = X.r32(X.f64(new) * factor)
    return X.r32(X.f64(old) * tables.float32(1.0 - momentum) + X.f64(new) * tables.float32(momentum))
