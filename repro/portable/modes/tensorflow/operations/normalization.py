"""Batch normalization, and that of the channels beside each other (LRN)."""

import numpy as np

from repro.portable.backends.numpy import Array, Backend
from repro.portable.compiler.numpy.plan import run
from repro.portable.definitions import normalization
from repro.portable.definitions.functions import powers
from repro.portable.modes.tensorflow.dispatcher.dispatch import Attributes, define
from repro.portable.modes.tensorflow.dispatcher.types import as_float32, cast_back
from repro.portable.modes.tensorflow.operations.functions import evaluate

Six = tuple[Array, ...]


def _channel(given: Attributes, x: Array) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The axes that are not the channel's, and the shape of numbers for each channel."""
    channel = 1 if given.get("data_format", "NHWC").startswith("NC") else x.ndim - 1
    axes = tuple(axis for axis in range(x.ndim) if axis != channel)
    return axes, tuple(x.shape[channel] if axis == channel else 1 for axis in range(x.ndim))


@define("FusedBatchNormV3")
def batch_norm_with_one_more(given: Attributes, *arrays: Array) -> Six:
    """And a result that only a GPU uses."""
    return (*batch_norm(given, *arrays), np.zeros(0, np.float32))


@define("FusedBatchNorm", "FusedBatchNormV2")
def batch_norm(given: Attributes, x: Array, scale: Array, offset: Array, mean: Array, variance: Array) -> Six:
    """The result, the running mean and variance, and twice what the gradient needs: the mean and the variance."""
    axes, shape = _channel(given, x)
    wide = x.astype(np.float32)
    factors, eps = (scale.reshape(shape), offset.reshape(shape)), float(np.float32(given["epsilon"]))
    share = np.float32(given.get("exponential_avg_factor", 1.0))
    if given["is_training"]:
        y, middle, spread, _ = run(axes, normalization.scaled_forward, wide, *factors, axes=axes, eps=eps)
        terms = x.size // max(1, scale.size)
        held = [middle.reshape(-1), spread.reshape(-1)]
        fair = np.float32(terms / max(1, terms - 1))
        running = [held[0], held[1] * fair]
        if share != 1:
            pairs = zip((mean, variance), running, strict=True)
            running = [old * (np.float32(1) - share) + new * share for old, new in pairs]
    else:
        given_moments = mean.reshape(shape), variance.reshape(shape)
        y = run((), normalization.fixed_forward, wide, *given_moments, *factors, eps=eps)
        running = held = [mean, variance]
    return (cast_back(y, x.dtype), *running, *held)


@define("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")
def batch_norm_gradient(
    given: Attributes, gradient: Array, x: Array, scale: Array, mean: Array, variance: Array, *_: Array, slices: int
) -> Six:
    axes, shape = _channel(given, x)
    wide, g = x.astype(np.float32), gradient.astype(np.float32)
    eps = float(np.float32(given["epsilon"]))
    factor, middle, spread = (each.reshape(shape) for each in (scale, mean, variance))
    needs = (True, True, True)
    if given["is_training"]:
        root = Backend.r32(np.sqrt(spread.astype(np.float64) + eps))
        inverse = Backend.r32(1.0 / root.astype(np.float64))
        gradients = run(
            axes, normalization.scaled_backward, wide, middle, inverse, factor, factor, g, axes, needs, slices=slices
        )
    else:
        gradients = run(
            axes, normalization.fixed_backward, wide, middle, spread, factor, factor, g, eps, needs, slices=slices
        )
    none = np.zeros((), np.float32)
    return cast_back(gradients[0], x.dtype), gradients[1].reshape(-1), gradients[2].reshape(-1), none, none


# --- channels beside each other ---------------------------------------------------------------------------------------


def _beside(x: Array, radius: int) -> Array:
    """The sums over the channels at most a radius away, in their order, float64."""
    edge = ((0, 0),) * (x.ndim - 1)
    padded = np.pad(x, (*edge, (radius, radius)))
    result = np.zeros(x.shape)
    for place in range(2 * radius + 1):
        result = result + padded[..., place : place + x.shape[-1]]
    return result


def _response(given: Attributes, x: Array) -> tuple[Array, Array, tuple[int, float, float]]:
    """bias + alpha times the sums of squares; its power to -beta; the radius, alpha and beta. All in float64."""
    radius = min(int(given["depth_radius"]), x.shape[-1])
    bias, alpha, beta = (float(np.float32(given[name])) for name in ("bias", "alpha", "beta"))
    norm = bias + alpha * _beside(x * x, radius)
    return norm, evaluate(powers.power, norm, np.full_like(norm, -beta)), (radius, alpha, beta)


@define("LRN")
def local_response(given: Attributes, x: Array) -> Array:
    wide = as_float32(x).astype(np.float64)
    return cast_back(wide * _response(given, wide)[1], x.dtype)


@define("LRNGrad")
def local_response_gradient(given: Attributes, gradient: Array, x: Array, y: Array) -> Array:
    g, wide, result = (as_float32(each).astype(np.float64) for each in (gradient, x, y))
    norm, power, (radius, alpha, beta) = _response(given, wide)
    shared = _beside(g * result / norm, radius)
    return cast_back(g * power - wide * (shared * (2.0 * alpha * beta)), x.dtype)
