"""Functions of the libraries for JAX and TensorFlow.

Each takes a framework first; jax/functional.py and tensorflow/functional.py bind theirs, and add what differs. Arrays
are float32, or of integers where it says so; images are [B, H, W, C]. UsageError, with one line, for another dtype or
for shapes that do not fit.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from repro.portable.arguments import (
    check_alike,
    check_attention,
    check_convolution,
    check_dimensions,
    check_embedding,
    check_groups,
    check_images,
    check_labels,
    check_linear,
    check_mask,
    check_number,
    check_rotary,
    check_samples,
    check_shapes,
    check_share,
    edges,
    pair,
    window,
)
from repro.portable.definitions import attention, convolution, losses, normalization, pointwise, pooling
from repro.portable.definitions import linear as dense
from repro.portable.definitions.grids import Operation
from repro.portable.definitions.softmax import softmax as softmax_of_rows
from repro.portable.definitions.xp import Array
from repro.portable.library.framework import SEEDS, STEPS, Framework, floats, indices, or_nan, padded, whole

Size = int | Sequence[int]
Padding = int | str | Sequence[Any]


# --- layers -----------------------------------------------------------------------------------------------------------


def linear(fw: Framework, x: Array, kernel: Array, bias: Array | None = None) -> Array:
    """x kernel + bias: [..., I], [I, O], [O] -> [..., O]."""
    x, kernel, bias = floats(fw, "linear", x=x, kernel=kernel, bias=bias)
    check_linear(x, kernel, bias, inputs=0)
    return fw.apply(dense.linear, x, fw.xp.transpose(kernel), bias)


def conv2d(
    fw: Framework,
    x: Array,
    kernel: Array,
    bias: Array | None = None,
    stride: Size = 1,
    padding: Padding = 0,
    dilation: Size = 1,
    groups: int = 1,
) -> Array:
    """[B, H, W, I], [h, w, I / groups, O], [O] -> [B, H', W', O].

    padding: of zeros; an integer, a pair, a pair of pairs, "VALID" or "SAME".
    """
    x, kernel, bias = floats(fw, "conv2d", x=x, kernel=kernel, bias=bias)
    check_convolution(x, kernel, bias, groups, channels=3, inputs=2, outputs=3)
    stride, dilation = pair("conv2d", "stride", stride), pair("conv2d", "dilation", dilation)
    around = edges("conv2d", padding, tuple(x.shape)[1:3], tuple(kernel.shape)[:2], stride, dilation)
    x, even = padded(fw.xp, x, around, 0.0)
    options = {"stride": stride, "padding": even, "dilation": dilation, "groups": groups}
    return fw.apply(convolution.convolution, x, fw.xp.permute(kernel, convolution.OUTPUTS_FIRST), bias, **options)


def max_pool2d(fw: Framework, x: Array, kernel_size: Size, stride: Size | None = None, padding: Padding = 0) -> Array:
    """The maximum of each window: [B, H, W, C] -> [B, H', W', C]. The stride is the window's size unless given."""
    return _pooled(fw, "max_pool2d", pooling.max_pool, -math.inf, x, kernel_size, stride, padding)


def avg_pool2d(fw: Framework, x: Array, kernel_size: Size, stride: Size | None = None, padding: Padding = 0) -> Array:
    """The mean of each window, as max_pool2d; padding counts as zeros."""
    return _pooled(fw, "avg_pool2d", pooling.average_pool, 0.0, x, kernel_size, stride, padding)


def _pooled(
    fw: Framework, function: str, operation: Operation, empty: float, x: Array, size: Any, stride: Any, padding: Padding
) -> Array:
    (x,) = floats(fw, function, x=x)
    check_images(function, "x", x)
    kernel, step, around = window(function, size, stride, padding, tuple(x.shape)[1:3])
    x, even = padded(fw.xp, x, around, empty)
    return fw.apply(operation, x, kernel=kernel, stride=step, padding=even)


def global_avg_pool2d(fw: Framework, x: Array) -> Array:
    """The mean of each image: [B, H, W, C] -> [B, C]."""
    (x,) = floats(fw, "global_avg_pool2d", x=x)
    check_images("global_avg_pool2d", "x", x)
    return fw.xp.reshape(fw.apply(pooling.mean, x, axes=(1, 2)), (x.shape[0], x.shape[3]))


def embedding(fw: Framework, index: Array, weight: Array) -> Array:
    """Rows of a weight: integers [...] from 0 to N - 1, and [N, C] -> [..., C].

    Compiled code returns NaN for another index.
    """
    (weight,) = floats(fw, "embedding", weight=weight)
    check_embedding(weight)
    index, inside = indices(fw, "embedding", "index", index, weight.shape[0])
    return or_nan(fw, fw.apply(dense.embedding, index, weight), inside)


def scaled_dot_product_attention(
    fw: Framework,
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None = None,
    is_causal: bool = False,
    scale: float | None = None,
) -> Array:
    """softmax(query key^T scale) value: [..., T, D], [..., S, D], [..., S, E] -> [..., T, E].

    mask: bool, of a shape that fits [..., T, S], True where a query sees a key; one that sees nothing gives 0.
    is_causal: no query sees a later key; the numbers of keys and queries are equal. scale: 1 / sqrt(D) unless given.
    """
    name = "scaled_dot_product_attention"
    query, key, value = floats(fw, name, query=query, key=key, value=value)
    check_attention(name, query, key, value, is_causal, scale)
    if mask is not None:
        mask = fw.array(mask)
        check_mask(name, "mask", mask, (*tuple(query.shape)[:-1], key.shape[-2]))
    return fw.apply(attention.attention, query, key, value, mask, causal=is_causal, scale=scale)


# --- activations, dropout ---------------------------------------------------------------------------------------------


def relu(fw: Framework, x: Array) -> Array:
    """max(x, 0), with the gradient 0 at 0."""
    return fw.apply(pointwise.relu, *floats(fw, "relu", x=x))


def gelu(fw: Framework, x: Array, approximate: bool = False) -> Array:
    """x times the distribution function of the normal distribution, or its approximation by tanh."""
    return _activation(fw, "gelu", x, "gelu_tanh" if approximate else "gelu")


def silu(fw: Framework, x: Array) -> Array:
    """x times the logistic function, also called swish."""
    return _activation(fw, "silu", x, "silu")


def tanh(fw: Framework, x: Array) -> Array:
    """The hyperbolic tangent."""
    return _activation(fw, "tanh", x, "tanh")


def sigmoid(fw: Framework, x: Array) -> Array:
    """The logistic function."""
    return _activation(fw, "sigmoid", x, "sigmoid")


def _activation(fw: Framework, function: str, x: Array, table: str) -> Array:
    return fw.apply(pointwise.activation, *floats(fw, function, x=x), name=table)


def softmax(fw: Framework, x: Array) -> Array:
    """Softmax over the last axis."""
    (x,) = floats(fw, "softmax", x=x)
    check_dimensions("softmax", 1, x=x)
    return fw.apply(softmax_of_rows, x)


def dropout(fw: Framework, x: Array, rate: float, seed: int | Array, step: int | Array) -> Array:
    """x / (1 - rate) with probability 1 - rate, 0 otherwise, by random numbers that are functions of their place.

    seed: from 0 to 2^62 - 1, another one for each layer. step: the number of the training step, from 0 to 2^32 - 1; the
    same seed and step drop the same again.
    """
    (x,) = floats(fw, "dropout", x=x)
    check_share("dropout", "rate", rate)
    check_dimensions("dropout", 1, x=x)
    numbers = whole(fw, "dropout", "seed", seed, SEEDS), whole(fw, "dropout", "step", step, STEPS)
    return fw.apply(pointwise.dropout, x, *numbers, rate=float(rate), rows=False) if rate else x


# --- normalization ----------------------------------------------------------------------------------------------------


def layer_norm(
    fw: Framework, x: Array, scale: Array | None = None, bias: Array | None = None, epsilon: float = 1e-5
) -> Array:
    """(x - mean) / sqrt(variance + epsilon) scale + bias of the last axis: [..., C], [C], [C] -> [..., C]."""
    x, scale, bias = floats(fw, "layer_norm", x=x, scale=scale, bias=bias)
    check_dimensions("layer_norm", 1, x=x)
    check_number("layer_norm", "epsilon", epsilon)
    y, _, _ = fw.apply(normalization.normalize, x, axes=(-1,), eps=epsilon, center=True, batch=False)
    return _affine(fw, "layer_norm", y, scale, bias)


def rms_norm(fw: Framework, x: Array, scale: Array | None = None, epsilon: float = 1e-6) -> Array:
    """x / sqrt(mean of squares + epsilon) scale of the last axis: [..., C], [C] -> [..., C]."""
    x, scale = floats(fw, "rms_norm", x=x, scale=scale)
    check_dimensions("rms_norm", 1, x=x)
    check_number("rms_norm", "epsilon", epsilon)
    y, _ = fw.apply(normalization.normalize, x, axes=(-1,), eps=epsilon, center=False, batch=False)
    return _affine(fw, "rms_norm", y, scale, None)


def group_norm(
    fw: Framework,
    x: Array,
    groups: int,
    scale: Array | None = None,
    bias: Array | None = None,
    epsilon: float = 1e-5,
) -> Array:
    """Normalize all of a sample that is in a group of neighboring channels, as layer_norm does: [B, ..., C] -> [B, ..., C]."""
    x, scale, bias = floats(fw, "group_norm", x=x, scale=scale, bias=bias)
    check_groups("group_norm", "x", x, -1, groups)
    check_number("group_norm", "epsilon", epsilon)
    shape = tuple(x.shape)
    grouped = fw.xp.reshape(x, (shape[0], -1, groups, shape[-1] // groups))
    y, _, _ = fw.apply(normalization.normalize, grouped, axes=(1, 3), eps=epsilon, center=True, batch=False)
    return _affine(fw, "group_norm", fw.xp.reshape(y, shape), scale, bias)


def batch_norm(
    fw: Framework,
    x: Array,
    mean: Array,
    variance: Array,
    scale: Array | None = None,
    bias: Array | None = None,
    training: bool = False,
    momentum: float = 0.1,
    epsilon: float = 1e-5,
) -> tuple[Array, Array, Array]:
    """[..., C] over the batch, with running mean and variance [C] -> [..., C], and both anew.

    In training by the batch's own mean and variance; the running ones move by `momentum` towards them, with a variance
    over n - 1 as in PyTorch. In evaluation by the running ones, which are returned as they are.
    """
    name, xp = "batch_norm", fw.xp
    x, mean, variance, scale, bias = floats(fw, name, x=x, mean=mean, variance=variance, scale=scale, bias=bias)
    check_dimensions(name, 2, x=x)
    check_shapes(name, x.shape[-1:], mean=mean, variance=variance)
    check_number(name, "momentum", momentum, 0.0, 1.0)
    check_number(name, "epsilon", epsilon)
    if not training:
        y = fw.apply(normalization.normalize_by, x, mean, variance, eps=epsilon)
        return _affine(fw, name, y, scale, bias), mean, variance
    terms = math.prod(tuple(x.shape)[:-1]) * xp.ranks.size
    check_samples(name, terms)
    axes = tuple(range(len(x.shape) - 1))
    y, average, spread = fw.apply(normalization.normalize, x, axes=axes, eps=epsilon, center=True, batch=True)
    average, spread = (fw.constant(xp.reshape(each, (-1,))) for each in (average, spread))
    mean = normalization.moving(xp, mean, average, momentum)
    variance = normalization.moving(xp, variance, spread, momentum, terms / (terms - 1))
    return _affine(fw, name, y, scale, bias), mean, variance


def _affine(fw: Framework, function: str, x: Array, scale: Array | None, bias: Array | None) -> Array:
    check_shapes(function, x.shape[-1:], scale=scale, bias=bias)
    if scale is None and bias is None:
        return x
    return fw.apply(pointwise.affine, x, fw.array(np.ones(x.shape[-1], np.float32)) if scale is None else scale, bias)


# --- others -----------------------------------------------------------------------------------------------------------


def rotary(fw: Framework, x: Array, base: float = 10000.0) -> Array:
    """Rotary positions of [..., T, D], D even: the pairs (x_i, x_(i + D/2)) turned by position and i."""
    (x,) = floats(fw, "rotary", x=x)
    check_rotary("x", x, base)
    return fw.apply(pointwise.rotate, x, base=float(base))


def add(fw: Framework, a: Array, b: Array) -> Array:
    """a + b, of one shape: a residual connection. What is added to all samples has a sum as gradient: use linear."""
    a, b = floats(fw, "add", a=a, b=b)
    check_alike("add", a, b)
    return fw.apply(pointwise.add, a, b)


def cross_entropy(fw: Framework, logits: Array, labels: Array, label_smoothing: float = 0.0) -> Array:
    """The mean softmax cross-entropy of logits [..., V] and labels, integers [...] -> float32 of no dimension.

    Compiled code returns NaN where a label is not from 0 to V - 1.
    """
    name, reshape = "cross_entropy", fw.xp.reshape
    (logits,) = floats(fw, name, logits=logits)
    check_dimensions(name, 2, logits=logits)
    classes = logits.shape[-1]
    labels, inside = indices(fw, name, "labels", labels, classes)
    check_labels(logits, labels, -1, label_smoothing)
    rows, classes_of_rows = reshape(or_nan(fw, logits, inside), (-1, classes)), reshape(labels, (-1,))
    return fw.apply(losses.cross_entropy, rows, classes_of_rows, smoothing=float(label_smoothing))


def mse(fw: Framework, x: Array, target: Array) -> Array:
    """The mean of (x - target)^2, of one shape -> float32 of no dimension."""
    x, target = floats(fw, "mse", x=x, target=target)
    check_alike("mse", x, target)
    return fw.apply(losses.mse, x, target)
