"""Reference: losses, the mean over samples."""

import math

import numpy as np

from reference.arithmetic import Array, exact_dot, f64, r32
from reference.attention import exponentials
from repro.portable.numbers import tables
from repro.portable.numbers.constants import EXP_BITS, LARGEST_DISTANCE, LOSS_BITS, POWER_BITS


def cross_entropy(logits: Array, labels: Array, smoothing: float = 0.0, mean: bool = True) -> Array:
    """Of logits [N, V] and labels int [N], the mean, of no dimension: log(sum of exp) - logit, all over the largest.

    Without `mean` the sum, float64.

    The loss of a sample is a multiple of 2^-24, and so are logarithms and distances. A distance is how far a logit is
    below the largest of its row, 2^12 at most; the label's counts 1 - smoothing, the mean of all counts smoothing.
    """
    z = f64(logits)
    _, total = exponentials(np.rint(z * 2.0**EXP_BITS), np.ones(z.shape, bool))
    losses = []
    for row, label, s in zip(z, labels, total[:, 0], strict=True):
        if np.isnan(s):
            losses.append(np.nan)
            continue
        distances = np.rint(np.minimum(row.max() - row, LARGEST_DISTANCE) * 2.0**LOSS_BITS)
        distance = distances[label]
        if smoothing:
            distance = np.rint(distance * (1.0 - smoothing)) + np.rint(distances.sum() * (smoothing / len(row)))
        losses.append(logarithm(float(s) * 2.0**-POWER_BITS) + float(distance) * 2.0**-LOSS_BITS)
    return r32(np.sum(losses) * (1.0 / len(losses))) if mean else np.sum(losses)


def logarithm(s: float) -> float:
    """Of 1 <= s < 2^63, s = 2^k (j / 2^8) (1 + rest / 2^20): three logarithms by tables, multiples of 2^-24."""
    powers_of_two, coarse, fine = tables.log()
    k = math.frexp(s)[1] - 1
    m = math.ldexp(s, -k)
    j = math.floor(m * 2**8)
    rest = round((m / (j * 2.0**-8) - 1.0) * 2.0**20)
    return float(powers_of_two[k] + coarse[j - 2**8] + fine[rest])


def cross_entropy_gradients(logits: Array, labels: Array, gradient: Array, smoothing: float = 0.0, mean: bool = True):
    """Softmax, a multiple of 2^-40, less the target: 1 - smoothing for the label, and smoothing / V for every class."""
    powers, total = exponentials(np.rint(f64(logits) * 2.0**EXP_BITS), np.ones(logits.shape, bool))
    powers = np.rint(powers)
    target = np.zeros(logits.shape)
    target[np.arange(len(labels)), labels] = 1.0 - smoothing
    target = target + smoothing / logits.shape[1]
    residual = r32(np.rint(powers * (1.0 / total) * 2.0**POWER_BITS) * 2.0**-POWER_BITS - target)
    share = r32(f64(gradient) * (1.0 / len(logits) if mean else 1.0))
    return r32(f64(residual) * f64(share)), None


def mse(x: Array, target: Array) -> Array:
    """The mean of (x - target)^2, of no dimension."""
    away = r32(f64(x) - f64(target)).reshape(-1)
    return r32(exact_dot(away, away, (0,))[0] * (1.0 / away.size))


def mse_gradients(x: Array, target: Array, gradient: Array):
    share = r32(f64(gradient) * (2.0 / x.size))
    grad_x = r32(f64(r32(f64(x) - f64(target))) * f64(share))
    return grad_x, -grad_x
