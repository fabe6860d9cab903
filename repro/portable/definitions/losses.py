"""Losses, the mean over all ranks."""

import math

from repro.portable.definitions.exponentials import logarithm, powers
from repro.portable.definitions.grids import Operation, check_length, exact_sum, quantize, scaled
from repro.portable.definitions.xp import Backend
from repro.portable.numbers.constants import BITS, EXP_BITS, LARGEST_DISTANCE, LOSS_BITS, POWER_BITS


def _cross_entropy_forward(xp: Backend, logits, labels, smoothing: float = 0.0, mean: bool = True):
    """Softmax cross-entropy of logits [N, V] and labels int [N] -> the mean, float32 of no dimension.

    Without `mean` the sum, of this rank's samples, float64, exact. With label smoothing each class has smoothing / V of
    the label, its own class the rest.
    """
    own = xp.one_hot(labels, logits.shape[1])
    z = xp.f64(logits)
    power, total = powers(xp, xp.rint(z * 2.0**EXP_BITS))
    target = own * (1.0 - smoothing) + smoothing / logits.shape[1] if smoothing else own
    residual = xp.r32(xp.rint(xp.rint(power) * (1.0 / total) * 2.0**POWER_BITS) * 2.0**-POWER_BITS - target)
    away = xp.rint(xp.clip(xp.maximum_of(z) - z, 0.0, LARGEST_DISTANCE) * 2.0**LOSS_BITS)
    distance = xp.sum(own * away, (-1,))
    if smoothing:
        distance = xp.rint(distance * (1.0 - smoothing)) + xp.rint(xp.sum(away, (-1,)) * (smoothing / logits.shape[1]))
    each = logarithm(xp, total * 2.0**-POWER_BITS) + distance * 2.0**-LOSS_BITS
    total = xp.reshape(xp.sum(each, (0, 1)), ())
    if mean:
        total = xp.r32(xp.total(total) * (1.0 / (logits.shape[0] * xp.ranks.size)))
    return total, (residual,)


def _cross_entropy_backward(xp: Backend, saved, gradient, needs, shapes, smoothing: float = 0.0, mean: bool = True):
    (residual,) = saved
    share = xp.r32(xp.f64(gradient) * (1.0 / (shapes[0][0] * xp.ranks.size) if mean else 1.0))
    return xp.r32(xp.f64(residual) * xp.f64(share)), None


cross_entropy = Operation(_cross_entropy_forward, _cross_entropy_backward)


def _mse_forward(xp: Backend, x, target):
    """The mean of (x - target)^2, of one shape, float32 of no dimension."""
    away = xp.r32(xp.f64(x) - xp.f64(target))
    flat = xp.reshape(away, (-1,))
    check_length(flat.shape[0] * xp.ranks.size)
    q, p = quantize(xp, flat, (0,), batch=True)
    total = xp.total(xp.sum(xp.f64(q) * xp.f64(q), (0,)))
    total = scaled(xp, total, 2 * BITS, p, p)
    return xp.r32(xp.reshape(total, ()) * (1.0 / (flat.shape[0] * xp.ranks.size))), (away,)


def _mse_backward(xp: Backend, saved, gradient, needs, shapes):
    (away,) = saved
    share = xp.r32(xp.f64(gradient) * (2.0 / (math.prod(shapes[0]) * xp.ranks.size)))
    grad_x = xp.r32(xp.f64(away) * xp.f64(share))
    return grad_x, (-grad_x if needs[1] else None)


mse = Operation(_mse_forward, _mse_backward)


def likelihood(xp: Backend, scores, labels, ignored: int, mean: bool):
    """The negative log-likelihood of labels int [N], of their logarithms [N, V]; all float32, [1].

    The sum or the mean of those that are not ignored, each rounded once before a mean divides; how many these are; and how
    many labels are none.
    """
    rows, classes = scores.shape
    seen = labels != ignored
    there = seen & (labels >= 0) & (labels < classes)
    place = xp.where(there, labels, 0) + xp.counting(scores, rows) * classes
    each = xp.where(there, -xp.take(xp.reshape(scores, (-1,)), place), 0.0)
    number = xp.sum(xp.f64(seen), (0,))
    loss, counted = xp.f32(exact_sum(xp, each, (0,))), xp.f32(number)
    return loss / counted if mean else loss, counted, number - xp.sum(xp.f64(there), (0,))


def likelihood_backward(xp: Backend, gradient, counted, labels, classes: int, ignored: int, mean: bool):
    """The gradient with respect to the logarithms, [N, V], of one for the result."""
    share = gradient / counted if mean else gradient
    labels = xp.reshape(labels, (-1, 1))
    return xp.where((xp.counting(labels, classes) == labels) & (labels != ignored), -share, 0.0)
