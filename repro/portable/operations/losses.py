"""Losses, the mean over a batch: exact sums, over all ranks, too."""

import math

from repro.portable import tables
from repro.portable.constants import BITS, EXP_BITS, LARGEST_DISTANCE, LOSS_BITS, POWER_BITS
from repro.portable.operations.attention import powers
from repro.portable.operations.grids import Operation, check_length, quantize, scaled
from repro.portable.tables import LOG_COARSE_BITS, LOG_FINE_BITS


def _cross_entropy_forward(X, logits, labels, smoothing: float = 0.0, mean: bool = True):
    """Softmax cross-entropy of logits [N, V] and labels int [N] -> the mean, float32 of no dimension.

    Without `mean` the sum, of this rank's samples, float64, exact. With label smoothing each class has smoothing / V of
    the label, its own class the rest.
    """
    own = X.one_hot(labels, logits.shape[1])
    z = X.f64(logits)
    shares, total, bits = powers(X, X.rint(z * 2.0**EXP_BITS))
    target = own * (1.0 - smoothing) + smoothing / logits.shape[1] if smoothing else own
    residual = X.r32(X.rint(shares * (1.0 / total) * 2.0**POWER_BITS) * 2.0**-POWER_BITS - target)
    away = X.rint(X.clip(X.maximum_of(z) - z, 0.0, LARGEST_DISTANCE) * 2.0**LOSS_BITS)
    distance = X.sum(own * away, (-1,))
    if smoothing:
        distance = X.rint(distance * (1.0 - smoothing)) + X.rint(X.sum(away, (-1,)) * (smoothing / logits.shape[1]))
    each = _log(X, total * 2.0**-bits) + distance * 2.0**-LOSS_BITS
    total = X.reshape(X.sum(each, (0, 1)), ())
    if mean:
        total = X.r32(X.total(total) * (1.0 / (logits.shape[0] * X.ranks.size)))
    return total, (residual,)


def _cross_entropy_backward(X, saved, gradient, needs, shapes, smoothing: float = 0.0, mean: bool = True):
    (residual,) = saved
    share = X.r32(X.f64(gradient) * (1.0 / (shapes[0][0] * X.ranks.size) if mean else 1.0))
    return X.r32(X.f64(residual) * X.f64(share)), None


cross_entropy = Operation(_cross_entropy_forward, _cross_entropy_backward)


def _log(X, s):
    """log s of 1 <= s < 2^63, a multiple of 2^-LOSS_BITS; NaN of NaN."""
    powers_of_two, coarse, fine = X.tables(s, tables.log)
    sound = X.where(s != s, 1.0, s)
    e = X.exponent(sound)
    m = sound * X.power_of_two(-e)
    j = X.floor(m * 2.0**LOG_COARSE_BITS)
    rest = X.rint((m / (j * 2.0**-LOG_COARSE_BITS) - 1.0) * 2.0**LOG_FINE_BITS)
    found = X.take(powers_of_two, e) + X.take(coarse, X.integer(j) - 2**LOG_COARSE_BITS) + X.take(fine, X.integer(rest))
    return X.where(s != s, s, found)


def _mse_forward(X, x, target):
    """The mean of (x - target)^2, of one shape, float32 of no dimension."""
    away = X.r32(X.f64(x) - X.f64(target))
    flat = X.reshape(away, (-1,))
    check_length(flat.shape[0] * X.ranks.size)
    q, p = quantize(X, flat, (0,), batch=True)
    total = X.total(X.sum(X.f64(q) * X.f64(q), (0,)))
    total = scaled(X, total, 2 * BITS, p, p)
    return X.r32(X.reshape(total, ()) * (1.0 / (flat.shape[0] * X.ranks.size))), (away,)


def _mse_backward(X, saved, gradient, needs, shapes):
    (away,) = saved
    share = X.r32(X.f64(gradient) * (2.0 / (math.prod(shapes[0]) * X.ranks.size)))
    of_x = X.r32(X.f64(away) * X.f64(share))
    return of_x, (-of_x if needs[1] else None)


mse = Operation(_mse_forward, _mse_backward)
