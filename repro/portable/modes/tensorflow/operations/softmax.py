"""Softmax, its logarithm, and cross-entropy."""

import numpy as np

from repro.portable.backends.numpy import Array, Backend
from repro.portable.compiler.numpy.plan import run
from repro.portable.definitions import softmax
from repro.portable.definitions.sums import as_type_of
from repro.portable.modes.tensorflow.dispatcher.dispatch import Attributes, define
from repro.portable.modes.tensorflow.dispatcher.types import as_float32, cast_back
from repro.portable.modes.tensorflow.operations import sums


def shares(x: Array) -> Array:
    """The softmax of the last axis, of float32 or float64."""
    return run((-1,), softmax.shares, x) if x.size else x


def logarithms(x: Array) -> Array:
    """The logarithms of the softmax."""
    return run((-1,), softmax.log_softmax, x) if x.size else x


@define("Softmax", reads=())
def softmax_of(given: Attributes, x: Array) -> Array:
    return cast_back(shares(as_float32(x)), x.dtype)


@define("LogSoftmax", reads=())
def log_softmax_of(given: Attributes, x: Array) -> Array:
    return cast_back(logarithms(as_float32(x)), x.dtype)


@define("SoftmaxCrossEntropyWithLogits")
def cross_entropy(given: Attributes, logits: Array, labels: Array) -> tuple[Array, Array]:
    """The sum of labels times the negative logarithm, and the softmax without the labels."""
    dtype = logits.dtype
    x, target = np.broadcast_arrays(as_float32(logits), as_float32(labels))
    each = -target.astype(np.float64) * logarithms(x).astype(np.float64)
    each = as_type_of(Backend, each, x)
    loss = sums.total(np.where(target == 0, each.dtype.type(0), each), (1,))[:, 0]
    return cast_back(loss, dtype), cast_back(shares(x) - target, dtype)


@define("SparseSoftmaxCrossEntropyWithLogits")
def sparse_cross_entropy(given: Attributes, logits: Array, labels: Array) -> tuple[Array, Array]:
    """The negative logarithm of each label, and the softmax without the labels."""
    x = as_float32(logits)
    if labels.size and (labels.min() < 0 or labels.max() >= x.shape[1]):
        wrong = labels[(labels < 0) | (labels >= x.shape[1])][0]
        raise ValueError(f"Received a label value of {wrong} which is outside the valid range of [0, {x.shape[1]})")
    rows = np.arange(len(labels))
    loss, gradient = -logarithms(x)[rows, labels], shares(x)
    gradient[rows, labels] -= gradient.dtype.type(1)
    return cast_back(loss, logits.dtype), cast_back(gradient, logits.dtype)
