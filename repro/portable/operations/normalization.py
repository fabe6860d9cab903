"""Normalization of rows or over the batch.

Layer and group norm, batch norm, RMS norm.
"""

from repro.portable import tables
from repro.portable.constants import BITS, MEAN_BITS
from repro.portable.operations.grids import Operation, check_length, count, exact_dot, exact_mean, quantize, scaled
from repro.portable.xp import Backend


def _forward(xp: Backend, x, axes, eps: float, center: bool, batch: bool):
    """(x - mean) / sqrt(variance + eps) along the axes; without `center` x / sqrt(mean of squares + eps).

    Returns that, the mean (of which there is none without `center`) and the variance, with axes of size 1; only the
    first has a gradient. With `batch` the samples lie along the axes.
    """
    terms = count(xp, x.shape, axes, batch)
    check_length(terms)
    if center:
        q, p = quantize(xp, x, axes, MEAN_BITS, batch)
        total = xp.sum(q, axes)
        middle = xp.rint((xp.total(total) if batch else total) * (1.0 / terms))
        away, unit = xp.f32(xp.f64(q) - middle), xp.f64(p) * 2.0**-MEAN_BITS  # integers below 2^24: nothing rounds
        mean = xp.r32(middle * unit)
    else:
        away, unit = x, 1.0
    q, p = quantize(xp, away, axes, batch=batch)
    squares = xp.sum(xp.f64(q) * xp.f64(q), axes)
    squares = scaled(xp, xp.total(squares) if batch else squares, 2 * BITS, p, p)
    variance = xp.r32(squares * (unit * unit) * (1.0 / terms))
    root = xp.r32(xp.sqrt(xp.f64(variance) + eps))  # rounded, or XLA would make one operation of this and the next
    inverse = xp.r32(1.0 / xp.f64(root))
    y = xp.r32(xp.f64(away) * (unit * xp.f64(inverse)))
    return ((y, mean, variance) if center else (y, variance)), (y, inverse)


def _backward(xp: Backend, saved, gradient, needs, shapes, axes, eps: float, center: bool, batch: bool):
    """(g - mean(g) - y mean(g y)) inverse; without `center` the first mean is left out."""
    y, inverse = saved
    share = 1.0 / count(xp, y.shape, axes, batch)
    along = xp.r32(exact_dot(xp, gradient, y, axes, batch) * share)
    rest = xp.f64(gradient)
    if center:
        rest = rest - xp.f64(exact_mean(xp, gradient, axes, batch))
    return (xp.r32((rest - xp.f64(y) * xp.f64(along)) * xp.f64(inverse)),)


normalize = Operation(_forward, _backward)


def _fixed_forward(xp: Backend, x, mean, variance, eps: float):
    """(x - mean) / sqrt(variance + eps) for the last axis of x; mean and variance, both [C], have no gradient."""
    inverse = xp.r32(1.0 / xp.f64(xp.r32(xp.sqrt(xp.f64(variance) + eps))))
    return xp.r32(xp.f64(xp.r32(xp.f64(x) - xp.f64(mean))) * xp.f64(inverse)), (inverse,)


def _fixed_backward(xp: Backend, saved, gradient, needs, shapes, eps: float):
    return xp.r32(xp.f64(gradient) * xp.f64(saved[0])), None, None


normalize_by = Operation(_fixed_forward, _fixed_backward)


def moving(xp: Backend, old, new, momentum: float, factor: float = 1.0):
    """A moving average: (1 - momentum) old + momentum new, with new times a factor rounded first.

    Both shares are rounded to float32, so that the products are exact.
    """
    new = xp.r32(xp.f64(new) * factor)
    return xp.r32(xp.f64(old) * tables.float32(1.0 - momentum) + xp.f64(new) * tables.float32(momentum))
