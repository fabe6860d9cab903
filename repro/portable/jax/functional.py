"""Functions of portable numerics for JAX: the same bits as in PyTorch and TensorFlow, on any device, eager or compiled.

Arrays are float32, or of integers where it says so; images are [B, H, W, C]. JAX must be told to have float64, which is
used inside: jax.config.update("jax_enable_x64", True). All functions but clip_by_global_norm have gradients (of the
first order), work under jit, and raise UsageError, with one line, for another dtype or for shapes that do not fit.
docs/portable.md says what each computes.
"""

from collections.abc import Sequence
from functools import partial, reduce
from typing import Any

import jax
from jax import Array
from jax import numpy as jnp

from repro.errors import UsageError
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
from repro.portable.jax.autograd import apply
from repro.portable.jax.backend import Backend
from repro.portable.operations import attention, convolution, losses, normalization, optimizers, pointwise, pooling
from repro.portable.operations import linear as dense

Padding = int | str | Sequence[Any]


def check_float64() -> None:
    """UsageError where JAX was not told to have float64."""
    if jax.dtypes.canonicalize_dtype("float64") != "float64":
        raise UsageError(
            'portable numerics: JAX has no float64; say jax.config.update("jax_enable_x64", True) before anything else'
        )


def _floats(function: str, **arrays: Any) -> list[Any]:
    """These arguments as arrays of JAX, float32; None stays."""
    check_float64()
    found = {name: None if array is None else jnp.asarray(array) for name, array in arrays.items()}
    check_floats(function, **found)
    return list(found.values())


def _indices(function: str, name: str, array: Any, size: int) -> Array:
    """This argument as an array of JAX, of integers; outside compiled code they must be from 0 to size - 1."""
    array = jnp.asarray(array)
    check_integers(function, name, array)
    if not isinstance(array, jax.core.Tracer):
        check_range(function, name, int(array.min()), int(array.max()), size)
    return array


# --- layers -----------------------------------------------------------------------------------------------------------


def linear(x: Array, kernel: Array, bias: Array | None = None) -> Array:
    """x kernel + bias: [..., I], [I, O], [O] -> [..., O]."""
    x, kernel, bias = _floats("linear", x=x, kernel=kernel, bias=bias)
    check_fit("linear", x.ndim >= 1 and kernel.ndim == 2 and x.shape[-1] == kernel.shape[0], x, kernel)
    check_channels("linear", kernel.shape[1], bias=bias)
    return apply(dense.linear, x, kernel.T, bias)


def conv2d(
    x: Array,
    kernel: Array,
    bias: Array | None = None,
    stride: int | Sequence[int] = 1,
    padding: Padding = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Array:
    """[B, H, W, I], [h, w, I / groups, O], [O] -> [B, H', W', O].

    padding: of zeros; an integer, a pair, a pair of pairs, "VALID" or "SAME".
    """
    x, kernel, bias = _floats("conv2d", x=x, kernel=kernel, bias=bias)
    fits = x.ndim == kernel.ndim == 4 and x.shape[3] == kernel.shape[2] * groups and kernel.shape[3] % groups == 0
    check_fit("conv2d", fits, x, kernel)
    check_channels("conv2d", kernel.shape[3], bias=bias)
    stride, dilation = pair("conv2d", "stride", stride), pair("conv2d", "dilation", dilation)
    around = edges("conv2d", padding, x.shape[1:3], kernel.shape[:2], stride, dilation)
    x, even = _padded(x, around, 0.0)
    options = {"stride": stride, "padding": even, "dilation": dilation, "groups": groups}
    return apply(convolution.convolution, x, kernel.transpose(3, 0, 1, 2), bias, **options)


def max_pool2d(
    x: Array, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: Padding = 0
) -> Array:
    """The maximum of each window: [B, H, W, C] -> [B, H', W', C]. The stride is the window's size unless given."""
    return _pooled("max_pool2d", pooling.max_pool, -jnp.inf, x, kernel_size, stride, padding)


def avg_pool2d(
    x: Array, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: Padding = 0
) -> Array:
    """The mean of each window, as max_pool2d; padding counts as zeros."""
    return _pooled("avg_pool2d", pooling.average_pool, 0.0, x, kernel_size, stride, padding)


def _pooled(function: str, operation, empty: float, x: Array, size: Any, stride: Any, padding: Padding) -> Array:
    (x,) = _floats(function, x=x)
    check_images(function, x)
    kernel = pair(function, "kernel_size", size)
    step = kernel if stride is None else pair(function, "stride", stride)
    around = edges(function, padding, x.shape[1:3], kernel, step)
    small = all(2 * max(each) <= size for each, size in zip(around, kernel, strict=True))
    check(function, small, f"padding={padding} is more than half of kernel_size={size}")
    x, even = _padded(x, around, empty)
    return apply(operation, x, kernel=kernel, stride=step, padding=even)


def _padded(x: Array, around: Edges, value: float) -> tuple[Array, tuple[int, int]]:
    """Images, and the padding that an operation adds to them: the same on both sides, or none, and it was added."""
    (top, bottom), (left, right) = around
    if top == bottom and left == right:
        return x, (top, left)
    return jnp.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=value), (0, 0)


def global_avg_pool2d(x: Array) -> Array:
    """The mean of each image: [B, H, W, C] -> [B, C]."""
    (x,) = _floats("global_avg_pool2d", x=x)
    check_images("global_avg_pool2d", x)
    return apply(pooling.mean, x, axes=(1, 2)).reshape(x.shape[0], x.shape[3])


def embedding(index: Array, weight: Array) -> Array:
    """Rows of a weight: integers [...] from 0 to N - 1, which compiled code does not check, and [N, C] -> [..., C]."""
    (weight,) = _floats("embedding", weight=weight)
    check("embedding", weight.ndim == 2, f"weight must be [N, C], not {list(weight.shape)}")
    return apply(dense.embedding, _indices("embedding", "index", index, weight.shape[0]), weight)


def scaled_dot_product_attention(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None = None,
    is_causal: bool = False,
    scale: float | None = None,
) -> Array:
    """softmax(query key^T scale) value: [..., T, D], [..., S, D], [..., S, E] -> [..., T, E].

    mask: bool, of a shape that fits [..., T, S], True where a query sees a key; one that sees nothing gives 0.
    is_causal: no query sees a later key, of as many keys as queries. scale: 1 / sqrt(D) unless given.
    """
    name = "scaled_dot_product_attention"
    query, key, value = _floats(name, query=query, key=key, value=value)
    check_attention(name, query, key, value, is_causal)
    if mask is not None:
        mask = jnp.asarray(mask)
        check(name, mask.dtype == bool, f"mask is {mask.dtype} and must be bool, True where a query sees a key")
    return apply(attention.attention, query, key, value, mask, causal=is_causal, scale=scale)


# --- activations, dropout ---------------------------------------------------------------------------------------------


def relu(x: Array) -> Array:
    """max(x, 0), with the gradient 0 at 0."""
    return apply(pointwise.relu, *_floats("relu", x=x))


def gelu(x: Array, approximate: bool = False) -> Array:
    """x times the distribution function of the normal distribution, or its approximation by tanh."""
    return _activation("gelu", x, "gelu_tanh" if approximate else "gelu")


def silu(x: Array) -> Array:
    """x times the logistic function, also called swish."""
    return _activation("silu", x, "silu")


def tanh(x: Array) -> Array:
    """The hyperbolic tangent."""
    return _activation("tanh", x, "tanh")


def sigmoid(x: Array) -> Array:
    """The logistic function."""
    return _activation("sigmoid", x, "sigmoid")


def _activation(function: str, x: Array, table: str) -> Array:
    return apply(pointwise.activation, *_floats(function, x=x), name=table)


def softmax(x: Array) -> Array:
    """Of the last axis."""
    return apply(attention.softmax, *_floats("softmax", x=x))


def dropout(x: Array, rate: float, seed: int | Array, step: int | Array) -> Array:
    """x / (1 - rate) with probability 1 - rate, 0 otherwise, by random numbers that are functions of their place.

    seed: from 0 to 2^62 - 1, another one for each layer. step: the number of the training step; the same seed and step
    drop the same again.
    """
    (x,) = _floats("dropout", x=x)
    check("dropout", 0 <= rate < 1, f"rate={rate} must be at least 0 and below 1")
    if rate == 0:
        return x
    key, place = (jnp.asarray(number, jnp.int64) for number in (seed, step))
    return apply(pointwise.dropout, x, key, place, rate=float(rate), rows=False)


# --- normalization ----------------------------------------------------------------------------------------------------


def layer_norm(x: Array, scale: Array | None = None, bias: Array | None = None, epsilon: float = 1e-5) -> Array:
    """(x - mean) / sqrt(variance + epsilon) scale + bias of the last axis: [..., C], [C], [C] -> [..., C]."""
    x, scale, bias = _floats("layer_norm", x=x, scale=scale, bias=bias)
    y, _, _ = apply(normalization.normalize, x, axes=(-1,), eps=epsilon, center=True, batch=False)
    return _affine("layer_norm", y, scale, bias)


def rms_norm(x: Array, scale: Array | None = None, epsilon: float = 1e-6) -> Array:
    """x / sqrt(mean of squares + epsilon) scale of the last axis: [..., C], [C] -> [..., C]."""
    x, scale = _floats("rms_norm", x=x, scale=scale)
    y, _ = apply(normalization.normalize, x, axes=(-1,), eps=epsilon, center=False, batch=False)
    return _affine("rms_norm", y, scale, None)


def group_norm(
    x: Array, groups: int, scale: Array | None = None, bias: Array | None = None, epsilon: float = 1e-5
) -> Array:
    """As layer_norm, but of all of a sample that is in a group of neighboring channels: [B, ..., C] -> [B, ..., C]."""
    x, scale, bias = _floats("group_norm", x=x, scale=scale, bias=bias)
    check("group_norm", x.ndim >= 2 and x.shape[-1] % groups == 0, f"{groups} groups of shape {list(x.shape)}")
    grouped = x.reshape(x.shape[0], -1, groups, x.shape[-1] // groups)
    y, _, _ = apply(normalization.normalize, grouped, axes=(1, 3), eps=epsilon, center=True, batch=False)
    return _affine("group_norm", y.reshape(x.shape), scale, bias)


def batch_norm(
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
    name = "batch_norm"
    x, mean, variance, scale, bias = _floats(name, x=x, mean=mean, variance=variance, scale=scale, bias=bias)
    check_channels(name, x.shape[-1], mean=mean, variance=variance)
    if not training:
        return (
            _affine(name, apply(normalization.normalize_by, x, mean, variance, eps=epsilon), scale, bias),
            mean,
            variance,
        )
    terms = x.size // x.shape[-1] * Backend.ranks.size
    check(name, terms > 1, "a variance in training needs more than one value per channel; make the batch larger")
    axes = tuple(range(x.ndim - 1))
    y, of_batch, spread = apply(normalization.normalize, x, axes=axes, eps=epsilon, center=True, batch=True)
    of_batch, spread = (jax.lax.stop_gradient(each.reshape(-1)) for each in (of_batch, spread))
    mean = normalization.moving(Backend, mean, of_batch, momentum)
    variance = normalization.moving(Backend, variance, spread, momentum, terms / (terms - 1))
    return _affine(name, y, scale, bias), mean, variance


def _affine(function: str, x: Array, scale: Array | None, bias: Array | None) -> Array:
    check_channels(function, x.shape[-1], scale=scale, bias=bias)
    if scale is None and bias is None:
        return x
    return apply(pointwise.affine, x, jnp.ones(x.shape[-1], jnp.float32) if scale is None else scale, bias)


# --- others -----------------------------------------------------------------------------------------------------------


def rotary(x: Array, base: float = 10000.0) -> Array:
    """Rotary positions of [..., T, D], D even: the pairs (x_i, x_(i + D/2)) turned by position and i."""
    (x,) = _floats("rotary", x=x)
    check("rotary", x.ndim >= 2 and x.shape[-1] % 2 == 0, f"x must be [..., T, D] with an even D, not {list(x.shape)}")
    return apply(pointwise.rotate, x, base=float(base))


def add(a: Array, b: Array) -> Array:
    """a + b, of one shape: a residual connection. What is added to all samples has a sum as gradient: use linear."""
    a, b = _floats("add", a=a, b=b)
    check_fit("add", a.shape == b.shape, a, b)
    return apply(pointwise.add, a, b)


def fork(x: Array, copies: int) -> tuple[Array, ...]:
    """x so many times. Their gradients are added from the first on, which is needed where x is used more than twice.

    Of two the order does not matter; of more, frameworks add in orders of their own.
    """
    return _fork(copies, *_floats("fork", x=x))


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _fork(copies: int, x: Array) -> tuple[Array, ...]:
    return (x,) * copies


def _add_up(_: int, __: None, gradients: tuple[Array, ...]) -> tuple[Array]:
    return (reduce(lambda a, b: Backend.r32(Backend.f64(a) + Backend.f64(b)), gradients),)


_fork.defvjp(lambda copies, x: (_fork(copies, x), None), _add_up)


def cross_entropy(logits: Array, labels: Array, label_smoothing: float = 0.0) -> Array:
    """The mean softmax cross-entropy of logits [..., V] and labels, integers [...] -> float32 of no dimension."""
    (logits,) = _floats("cross_entropy", logits=logits)
    check("cross_entropy", logits.ndim >= 2, f"logits must be [..., V], of a batch, not {list(logits.shape)}")
    labels = _indices("cross_entropy", "labels", labels, logits.shape[-1])
    check_fit("cross_entropy", logits.shape[:-1] == labels.shape, logits, labels)
    check("cross_entropy", 0 <= label_smoothing <= 1, f"label_smoothing={label_smoothing} must be from 0 to 1")
    rows = logits.reshape(-1, logits.shape[-1])
    return apply(losses.cross_entropy, rows, labels.reshape(-1), smoothing=float(label_smoothing))


def mse(x: Array, target: Array) -> Array:
    """The mean of (x - target)^2, of one shape -> float32 of no dimension."""
    x, target = _floats("mse", x=x, target=target)
    check_fit("mse", x.shape == target.shape, x, target)
    return apply(losses.mse, x, target)


def clip_by_global_norm(gradients: Any, limit: float) -> tuple[Any, Array]:
    """Gradients times min(1, limit / norm), and the norm over all of them, float32.

    gradients: a pytree. Squares are added in the order of its names, as `dense1/kernel`.
    """
    paths, tree = jax.tree_util.tree_flatten_with_path(gradients)
    names = [jax.tree_util.keystr(path, simple=True, separator="/") for path, _ in paths]
    order = sorted(range(len(names)), key=names.__getitem__)
    arrays = _floats("clip_by_global_norm", **{names[i]: paths[i][1] for i in order})
    clipped, norm = optimizers.clip(Backend, arrays, tables.float32(limit))
    found = dict(zip(order, clipped, strict=True))
    return jax.tree_util.tree_unflatten(tree, [found[i] for i in range(len(names))]), norm
