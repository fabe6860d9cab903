"""Functions of portable numerics for TensorFlow: the same bits as in PyTorch and JAX, on any device.

They work eagerly, in a tf.function and compiled by XLA. Tensors are float32, or of integers where it says so, of known
shapes; images are [B, H, W, C]. All functions but clip_by_global_norm have gradients (of the first order), and raise
UsageError, with one line, for another dtype or for shapes that do not fit. docs/portable.md says what each computes.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import tensorflow as tf

from repro.portable import tables
from repro.portable.arguments import (
    Edges,
    check,
    check_attention,
    check_channels,
    check_fit,
    check_floats,
    check_images,
    check_integers,
    check_range,
    edges,
    pair,
)
from repro.portable.operations import attention, convolution, losses, normalization, optimizers, pointwise, pooling
from repro.portable.operations import linear as dense
from repro.portable.tensorflow.autograd import apply
from repro.portable.tensorflow.backend import Backend

Padding = int | str | Sequence[Any]


def _floats(function: str, **arrays: Any) -> list[Any]:
    """These arguments as tensors, float32; None stays."""
    found = {name: None if array is None else tf.convert_to_tensor(array) for name, array in arrays.items()}
    check_floats(function, **found)
    return list(found.values())


def _indices(function: str, name: str, array: Any, size: int) -> tf.Tensor:
    """This argument as int32; outside of graphs it must be from 0 to size - 1."""
    array = tf.convert_to_tensor(array)
    check_integers(function, name, array)
    array = tf.cast(array, tf.int32)
    if tf.executing_eagerly():
        check_range(function, name, int(tf.reduce_min(array)), int(tf.reduce_max(array)), size)
    return array


# --- layers -----------------------------------------------------------------------------------------------------------


def linear(x: tf.Tensor, kernel: tf.Tensor, bias: tf.Tensor | None = None) -> tf.Tensor:
    """x kernel + bias: [..., I], [I, O], [O] -> [..., O]."""
    x, kernel, bias = _floats("linear", x=x, kernel=kernel, bias=bias)
    check_fit("linear", x.shape.rank >= 1 and kernel.shape.rank == 2 and x.shape[-1] == kernel.shape[0], x, kernel)
    check_channels("linear", kernel.shape[1], bias=bias)
    return apply(dense.linear, x, tf.transpose(kernel), bias)


def conv2d(
    x: tf.Tensor,
    kernel: tf.Tensor,
    bias: tf.Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: Padding = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> tf.Tensor:
    """[B, H, W, I], [h, w, I / groups, O], [O] -> [B, H', W', O].

    padding: of zeros; an integer, a pair, a pair of pairs, "VALID" or "SAME".
    """
    x, kernel, bias = _floats("conv2d", x=x, kernel=kernel, bias=bias)
    fits = (
        x.shape.rank == kernel.shape.rank == 4
        and x.shape[3] == kernel.shape[2] * groups
        and kernel.shape[3] % groups == 0
    )
    check_fit("conv2d", fits, x, kernel)
    check_channels("conv2d", kernel.shape[3], bias=bias)
    stride, dilation = pair("conv2d", "stride", stride), pair("conv2d", "dilation", dilation)
    around = edges("conv2d", padding, x.shape[1:3], kernel.shape[:2], stride, dilation)
    x, even = _padded(x, around, 0.0)
    options = {"stride": stride, "padding": even, "dilation": dilation, "groups": groups}
    return apply(convolution.convolution, x, tf.transpose(kernel, (3, 0, 1, 2)), bias, **options)


def max_pool2d(
    x: tf.Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: Padding = 0
) -> tf.Tensor:
    """The maximum of each window: [B, H, W, C] -> [B, H', W', C]. The stride is the window's size unless given."""
    return _pooled("max_pool2d", pooling.max_pool, -float("inf"), x, kernel_size, stride, padding)


def avg_pool2d(
    x: tf.Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: Padding = 0
) -> tf.Tensor:
    """The mean of each window, as max_pool2d; padding counts as zeros."""
    return _pooled("avg_pool2d", pooling.average_pool, 0.0, x, kernel_size, stride, padding)


def _pooled(
    function: str, operation, empty: float, x: tf.Tensor, size: Any, stride: Any, padding: Padding
) -> tf.Tensor:
    (x,) = _floats(function, x=x)
    check_images(function, x)
    kernel = pair(function, "kernel_size", size)
    step = kernel if stride is None else pair(function, "stride", stride)
    around = edges(function, padding, x.shape[1:3], kernel, step)
    small = all(2 * max(each) <= size for each, size in zip(around, kernel, strict=True))
    check(function, small, f"padding={padding} is more than half of kernel_size={size}")
    x, even = _padded(x, around, empty)
    return apply(operation, x, kernel=kernel, stride=step, padding=even)


def _padded(x: tf.Tensor, around: Edges, value: float) -> tuple[tf.Tensor, tuple[int, int]]:
    """Images, and the padding that an operation adds to them: the same on both sides, or none, and it was added."""
    (top, bottom), (left, right) = around
    if top == bottom and left == right:
        return x, (top, left)
    return tf.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=value), (0, 0)


def global_avg_pool2d(x: tf.Tensor) -> tf.Tensor:
    """The mean of each image: [B, H, W, C] -> [B, C]."""
    (x,) = _floats("global_avg_pool2d", x=x)
    check_images("global_avg_pool2d", x)
    return tf.reshape(apply(pooling.mean, x, axes=(1, 2)), (x.shape[0], x.shape[3]))


def embedding(index: tf.Tensor, weight: tf.Tensor) -> tf.Tensor:
    """Rows of a weight: integers [...] from 0 to N - 1, which compiled code does not check, and [N, C] -> [..., C]."""
    (weight,) = _floats("embedding", weight=weight)
    check("embedding", weight.shape.rank == 2, f"weight must be [N, C], not {list(weight.shape)}")
    return apply(dense.embedding, _indices("embedding", "index", index, weight.shape[0]), weight)


def scaled_dot_product_attention(
    query: tf.Tensor,
    key: tf.Tensor,
    value: tf.Tensor,
    mask: tf.Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
) -> tf.Tensor:
    """softmax(query key^T scale) value: [..., T, D], [..., S, D], [..., S, E] -> [..., T, E].

    mask: bool, of a shape that fits [..., T, S], True where a query sees a key; one that sees nothing gives 0.
    is_causal: no query sees a later key, of as many keys as queries. scale: 1 / sqrt(D) unless given.
    """
    name = "scaled_dot_product_attention"
    query, key, value = _floats(name, query=query, key=key, value=value)
    check_attention(name, query, key, value, is_causal)
    if mask is not None:
        mask = tf.convert_to_tensor(mask)
        check(name, mask.dtype == tf.bool, f"mask is {mask.dtype.name} and must be bool, True where a query sees a key")
    return apply(attention.attention, query, key, value, mask, causal=is_causal, scale=scale)


# --- activations, dropout ---------------------------------------------------------------------------------------------


def relu(x: tf.Tensor) -> tf.Tensor:
    """max(x, 0), with the gradient 0 at 0."""
    return apply(pointwise.relu, *_floats("relu", x=x))


def gelu(x: tf.Tensor, approximate: bool = False) -> tf.Tensor:
    """x times the distribution function of the normal distribution, or its approximation by tanh."""
    return _activation("gelu", x, "gelu_tanh" if approximate else "gelu")


def silu(x: tf.Tensor) -> tf.Tensor:
    """x times the logistic function, also called swish."""
    return _activation("silu", x, "silu")


def tanh(x: tf.Tensor) -> tf.Tensor:
    """The hyperbolic tangent."""
    return _activation("tanh", x, "tanh")


def sigmoid(x: tf.Tensor) -> tf.Tensor:
    """The logistic function."""
    return _activation("sigmoid", x, "sigmoid")


def _activation(function: str, x: tf.Tensor, table: str) -> tf.Tensor:
    return apply(pointwise.activation, *_floats(function, x=x), name=table)


def softmax(x: tf.Tensor) -> tf.Tensor:
    """Of the last axis."""
    return apply(attention.softmax, *_floats("softmax", x=x))


def dropout(x: tf.Tensor, rate: float, seed: int | tf.Tensor, step: int | tf.Tensor) -> tf.Tensor:
    """x / (1 - rate) with probability 1 - rate, 0 otherwise, by random numbers that are functions of their place.

    seed: from 0 to 2^62 - 1, another one for each layer. step: the number of the training step; the same seed and step
    drop the same again.
    """
    (x,) = _floats("dropout", x=x)
    check("dropout", 0 <= rate < 1, f"rate={rate} must be at least 0 and below 1")
    if rate == 0:
        return x
    key, place = (tf.cast(tf.convert_to_tensor(number), tf.int64) for number in (seed, step))
    return apply(pointwise.dropout, x, key, place, rate=float(rate), rows=False)


# --- normalization ----------------------------------------------------------------------------------------------------


def layer_norm(
    x: tf.Tensor, scale: tf.Tensor | None = None, bias: tf.Tensor | None = None, epsilon: float = 1e-5
) -> tf.Tensor:
    """(x - mean) / sqrt(variance + epsilon) scale + bias of the last axis: [..., C], [C], [C] -> [..., C]."""
    x, scale, bias = _floats("layer_norm", x=x, scale=scale, bias=bias)
    y, _, _ = apply(normalization.normalize, x, axes=(-1,), eps=epsilon, center=True, batch=False)
    return _affine("layer_norm", y, scale, bias)


def rms_norm(x: tf.Tensor, scale: tf.Tensor | None = None, epsilon: float = 1e-6) -> tf.Tensor:
    """x / sqrt(mean of squares + epsilon) scale of the last axis: [..., C], [C] -> [..., C]."""
    x, scale = _floats("rms_norm", x=x, scale=scale)
    y, _ = apply(normalization.normalize, x, axes=(-1,), eps=epsilon, center=False, batch=False)
    return _affine("rms_norm", y, scale, None)


def group_norm(
    x: tf.Tensor, groups: int, scale: tf.Tensor | None = None, bias: tf.Tensor | None = None, epsilon: float = 1e-5
) -> tf.Tensor:
    """As layer_norm, but of all of a sample that is in a group of neighboring channels: [B, ..., C] -> [B, ..., C]."""
    x, scale, bias = _floats("group_norm", x=x, scale=scale, bias=bias)
    check("group_norm", x.shape.rank >= 2 and x.shape[-1] % groups == 0, f"{groups} groups of shape {list(x.shape)}")
    grouped = tf.reshape(x, (x.shape[0], -1, groups, x.shape[-1] // groups))
    y, _, _ = apply(normalization.normalize, grouped, axes=(1, 3), eps=epsilon, center=True, batch=False)
    return _affine("group_norm", tf.reshape(y, x.shape), scale, bias)


def batch_norm(
    x: tf.Tensor,
    mean: tf.Tensor,
    variance: tf.Tensor,
    scale: tf.Tensor | None = None,
    bias: tf.Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    epsilon: float = 1e-5,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """[..., C] over the batch, with running mean and variance [C] -> [..., C], and both anew.

    In training by the batch's own mean and variance; the running ones move by `momentum` towards them, with a variance
    over n - 1 as in PyTorch. In evaluation by the running ones, which are returned as they are.
    """
    name = "batch_norm"
    x, mean, variance, scale, bias = _floats(name, x=x, mean=mean, variance=variance, scale=scale, bias=bias)
    check_channels(name, x.shape[-1], mean=mean, variance=variance)
    if not training:
        return (
            _affine(name, apply(normalization.normalize_by, x, mean, variance, eps=epsilon), scale, bias),
            mean,
            variance,
        )
    terms = x.shape.num_elements() // x.shape[-1] * Backend.ranks.size
    check(name, terms > 1, "a variance in training needs more than one value per channel; make the batch larger")
    axes = tuple(range(x.shape.rank - 1))
    y, of_batch, spread = apply(normalization.normalize, x, axes=axes, eps=epsilon, center=True, batch=True)
    of_batch, spread = (tf.stop_gradient(tf.reshape(each, (-1,))) for each in (of_batch, spread))
    mean = normalization.moving(Backend, mean, of_batch, momentum)
    variance = normalization.moving(Backend, variance, spread, momentum, terms / (terms - 1))
    return _affine(name, y, scale, bias), mean, variance


def _affine(function: str, x: tf.Tensor, scale: tf.Tensor | None, bias: tf.Tensor | None) -> tf.Tensor:
    check_channels(function, x.shape[-1], scale=scale, bias=bias)
    if scale is None and bias is None:
        return x
    return apply(pointwise.affine, x, tf.ones(x.shape[-1]) if scale is None else scale, bias)


# --- others -----------------------------------------------------------------------------------------------------------


def rotary(x: tf.Tensor, base: float = 10000.0) -> tf.Tensor:
    """Rotary positions of [..., T, D], D even: the pairs (x_i, x_(i + D/2)) turned by position and i."""
    (x,) = _floats("rotary", x=x)
    check(
        "rotary",
        x.shape.rank >= 2 and x.shape[-1] % 2 == 0,
        f"x must be [..., T, D] with an even D, not {list(x.shape)}",
    )
    return apply(pointwise.rotate, x, base=float(base))


def add(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """a + b, of one shape: a residual connection. What is added to all samples has a sum as gradient: use linear."""
    a, b = _floats("add", a=a, b=b)
    check_fit("add", a.shape == b.shape, a, b)
    return apply(pointwise.add, a, b)


def fork(x: tf.Tensor, copies: int) -> tuple[tf.Tensor, ...]:
    """x so many times. Their gradients are added from the first on, which is needed where x is used more than twice.

    Of two the order does not matter; of more, frameworks add in orders of their own.
    """

    @tf.custom_gradient
    def call(x: tf.Tensor):
        def add_up(*gradients: tf.Tensor) -> tf.Tensor:
            return reduce(lambda a, b: Backend.r32(Backend.f64(a) + Backend.f64(b)), gradients)

        return tuple(tf.identity(x) for _ in range(copies)), add_up

    return tuple(call(*_floats("fork", x=x)))


def cross_entropy(logits: tf.Tensor, labels: tf.Tensor, label_smoothing: float = 0.0) -> tf.Tensor:
    """The mean softmax cross-entropy of logits [..., V] and labels, integers [...] -> float32 of no dimension."""
    (logits,) = _floats("cross_entropy", logits=logits)
    check("cross_entropy", logits.shape.rank >= 2, f"logits must be [..., V], of a batch, not {list(logits.shape)}")
    labels = _indices("cross_entropy", "labels", labels, logits.shape[-1])
    check_fit("cross_entropy", logits.shape[:-1] == labels.shape, logits, labels)
    check("cross_entropy", 0 <= label_smoothing <= 1, f"label_smoothing={label_smoothing} must be from 0 to 1")
    rows = tf.reshape(logits, (-1, logits.shape[-1]))
    return apply(losses.cross_entropy, rows, tf.reshape(labels, (-1,)), smoothing=float(label_smoothing))


def mse(x: tf.Tensor, target: tf.Tensor) -> tf.Tensor:
    """The mean of (x - target)^2, of one shape -> float32 of no dimension."""
    x, target = _floats("mse", x=x, target=target)
    check_fit("mse", x.shape == target.shape, x, target)
    return apply(losses.mse, x, target)


def clip_by_global_norm(gradients: Mapping[str, tf.Tensor], limit: float) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
    """Gradients times min(1, limit / norm), and the norm over all of them, float32.

    gradients: by name. Squares are added in the order of names.
    """
    names = sorted(gradients)
    arrays = _floats("clip_by_global_norm", **{name: gradients[name] for name in names})
    clipped, norm = optimizers.clip(Backend, arrays, tables.float32(limit))
    found = dict(zip(names, clipped, strict=True))
    return {name: found[name] for name in gradients}, norm
