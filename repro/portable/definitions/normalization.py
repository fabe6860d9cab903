"""Normalization of rows or over the batch.

Layer and group norm, batch norm, RMS norm.
"""

from repro.portable.definitions.grids import (
    Operation,
    check_length,
    count,
    exact_dot,
    exact_mean,
    exact_sum,
    quantize,
    scaled,
)
from repro.portable.definitions.xp import Backend
from repro.portable.numbers import tables
from repro.portable.numbers.constants import BITS, MEAN_BITS


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


def _backward(
    xp: Backend, saved, gradient, needs, shapes, axes, eps: float, center: bool, batch: bool, slices: int = 1
):
    """(g - mean(g) - y mean(g y)) inverse; without `center` the first mean is left out."""
    y, inverse = saved
    share = 1.0 / count(xp, y.shape, axes, batch)
    along = xp.r32(exact_dot(xp, gradient, y, axes, batch, slices) * share)
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


def scaled_forward(xp: Backend, x, scale, shift, axes, eps: float):
    """normalize with center, then times scale, plus shift; both fit the shape of x, or are None.

    Returns that, the mean, the variance and 1 / sqrt(variance + eps), the last three with axes of size 1.
    """
    (y, mean, variance), (_, inverse) = _forward(xp, x, axes, eps, center=True, batch=False)
    return _scaled(xp, y, scale, shift), mean, variance, inverse


def scaled_backward(
    xp: Backend, x, mean, inverse, scale, like, gradient, axes, needs: tuple[bool, bool, bool], slices: int = 1
):
    """The gradients with respect to x, scale and shift, each if needed, from what scaled_forward returned.

    The last two are of the shape of `like`.
    """
    y = _normalized(xp, x, mean, inverse, axes)
    grad_x = None
    if needs[0]:
        through = gradient if scale is None else xp.r32(xp.f64(gradient) * xp.f64(scale))
        (grad_x,) = _backward(xp, (y, inverse), through, None, None, axes, 0.0, center=True, batch=False, slices=slices)
    return grad_x, *_of_affine(xp, y, like, gradient, needs, slices)


def _normalized(xp: Backend, x, mean, inverse, axes):
    """What scaled_forward scales, of x and of what that returned."""
    q, p = quantize(xp, x, axes, MEAN_BITS)
    unit = xp.f64(p) * 2.0**-MEAN_BITS
    away = xp.f64(q) - xp.rint(xp.f64(mean) * (1.0 / unit))
    return xp.r32(away * (unit * xp.f64(inverse)))


def scaled_products(xp: Backend, x, mean, inverse, gradient, axes):
    """What adds up to the gradient of scale: each product rounded."""
    return xp.r32(xp.f64(gradient) * xp.f64(_normalized(xp, x, mean, inverse, axes)))


def fixed_forward(xp: Backend, x, mean, variance, scale, shift, eps: float):
    """Normalize x with a given mean and variance, of shapes that broadcast to that of x."""
    y, _ = _fixed_forward(xp, x, mean, variance, eps)
    return _scaled(xp, y, scale, shift)


def fixed_backward(
    xp: Backend, x, mean, variance, scale, like, gradient, eps: float, needs: tuple[bool, bool, bool], slices: int = 1
):
    """The gradients of fixed_forward with respect to x, scale and shift."""
    y, (inverse,) = _fixed_forward(xp, x, mean, variance, eps)
    through = gradient if scale is None else xp.r32(xp.f64(gradient) * xp.f64(scale))
    grad_x = xp.r32(xp.f64(through) * xp.f64(inverse)) if needs[0] else None
    return grad_x, *_of_affine(xp, y, like, gradient, needs, slices)


def _scaled(xp: Backend, y, scale, shift):
    if scale is not None:
        y = xp.f64(y) * xp.f64(scale)
    return xp.r32(y if shift is None else xp.f64(y) + xp.f64(shift)) if scale is not None or shift is not None else y


def _of_affine(xp: Backend, y, like, gradient, needs, slices: int):
    """The gradients of scale and shift, of the shape of `like`."""
    if like is None:
        return None, None
    others = tuple(axis for axis, size in enumerate(like.shape) if size == 1)
    grad_scale = xp.r32(exact_dot(xp, gradient, y, others, slices=slices)) if needs[1] else None
    return grad_scale, xp.r32(exact_sum(xp, gradient, others)) if needs[2] else None
