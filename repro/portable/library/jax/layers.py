"""Modules with Flax's names, arguments and parameters.

Put `layers.` for `nn.`.
An argument that asks for what portable numerics does not have, as another dtype, is refused with one line when the
module is called. Flax's initializers are not portable, but for zeros and ones: start from weights that were drawn once,
with NumPy or from a file.
"""

import dataclasses
from typing import Any

from flax import linen as nn
from jax import Array
from jax import numpy as jnp

from repro.portable.arguments import check, check_count, dropout_key, refuse
from repro.portable.library.jax import functional

WITHOUT_EFFECT = {"parent", "name", "precision", "use_fast_variance", "force_float32_reductions"}


def _check_arguments(module: nn.Module, *understood: str) -> None:
    """UsageError where an argument that is not among these, or a dtype, asks for something else than the default."""
    for field in dataclasses.fields(module):
        value = getattr(module, field.name)
        if field.name in ("dtype", "param_dtype") and value is not None and jnp.dtype(value) == jnp.float32:
            continue
        if field.name not in {*understood, *WITHOUT_EFFECT} and value is not field.default and value != field.default:
            raise refuse(type(module).__name__, f"{field.name}={value!r} is not supported; leave it out")


class Dense(nn.Dense):
    """[..., I] -> [..., features]."""

    @nn.compact
    def __call__(self, inputs: Array) -> Array:
        _check_arguments(self, "features", "use_bias", "kernel_init", "bias_init")
        kernel = self.param("kernel", self.kernel_init, (inputs.shape[-1], self.features), jnp.float32)
        return functional.linear(inputs, kernel, _bias(self))


class Conv(nn.Conv):
    """[B, H, W, I] -> [B, H', W', features]. Of the paddings "CIRCULAR", "REFLECT" and "CAUSAL" are not there."""

    @nn.compact
    def __call__(self, inputs: Array) -> Array:
        _check_arguments(
            self,
            "features",
            "kernel_size",
            "strides",
            "padding",
            "kernel_dilation",
            "feature_group_count",
            "use_bias",
            "kernel_init",
            "bias_init",
        )
        size, groups = self.kernel_size, self.feature_group_count
        check("Conv", not isinstance(size, int) and len(size) == 2, f"kernel_size={size} must be a pair")
        check("Conv", inputs.ndim == 4, f"images must be [B, H, W, C], not {list(inputs.shape)}")
        check_count("Conv", "feature_group_count", groups)
        shape = (*size, inputs.shape[-1] // groups, self.features)
        kernel = self.param("kernel", self.kernel_init, shape, jnp.float32)
        strides, dilation = (1 if each is None else each for each in (self.strides, self.kernel_dilation))
        return functional.conv2d(inputs, kernel, _bias(self), strides, self.padding, dilation, groups)


def _bias(module: Any) -> Array | None:
    return module.param("bias", module.bias_init, (module.features,), jnp.float32) if module.use_bias else None


class Embed(nn.Embed):
    """Integers [...] from 0 to num_embeddings - 1 -> [..., features], in compiled code NaN for others."""

    def __call__(self, inputs: Array) -> Array:
        _check_arguments(self, "num_embeddings", "features", "embedding_init")
        return functional.embedding(inputs, self.embedding)

    def attend(self, query: Array) -> Array:
        """The product with every row: [..., features] -> [..., num_embeddings]."""
        return functional.linear(query, self.embedding.T)


class LayerNorm(nn.LayerNorm):
    """Layer normalization over the last axis."""

    @nn.compact
    def __call__(self, x: Array) -> Array:
        _check_arguments(self, "epsilon", "use_bias", "use_scale", "bias_init", "scale_init")
        return functional.layer_norm(x, *_scale_and_bias(self, x), epsilon=self.epsilon)


class RMSNorm(nn.RMSNorm):
    """RMS normalization over the last axis."""

    @nn.compact
    def __call__(self, x: Array) -> Array:
        _check_arguments(self, "epsilon", "use_scale", "scale_init")
        scale = self.param("scale", self.scale_init, x.shape[-1:], jnp.float32) if self.use_scale else None
        return functional.rms_norm(x, scale, epsilon=self.epsilon)


class GroupNorm(nn.GroupNorm):
    """Group normalization; channels are the last axis."""

    @nn.compact
    def __call__(self, x: Array) -> Array:
        _check_arguments(
            self, "num_groups", "group_size", "epsilon", "use_bias", "use_scale", "bias_init", "scale_init"
        )
        one = (self.num_groups is None) != (self.group_size is None)
        check("GroupNorm", one, "give num_groups, or group_size with num_groups=None")
        size = self.group_size
        if size is not None:
            check_count("GroupNorm", "group_size", size)
            check("GroupNorm", x.shape[-1] % size == 0, f"group_size={size} does not divide {x.shape[-1]} channels")
        groups = self.num_groups if size is None else x.shape[-1] // size
        return functional.group_norm(x, groups, *_scale_and_bias(self, x), epsilon=self.epsilon)


class BatchNorm(nn.BatchNorm):
    """Batch normalization over the last axis, with running averages in the collection `batch_stats`.

    They keep `momentum` of what they were. Other than Flax, and as PyTorch, the running variance is over n - 1.
    """

    @nn.compact
    def __call__(self, x: Array, use_running_average: bool | None = None) -> Array:
        _check_arguments(
            self, "use_running_average", "momentum", "epsilon", "use_bias", "use_scale", "bias_init", "scale_init"
        )
        evaluate = nn.merge_param("use_running_average", self.use_running_average, use_running_average)
        mean = self.variable("batch_stats", "mean", jnp.zeros, x.shape[-1:], jnp.float32)
        variance = self.variable("batch_stats", "var", jnp.ones, x.shape[-1:], jnp.float32)
        y, new_mean, new_variance = functional.batch_norm(
            x,
            mean.value,
            variance.value,
            *_scale_and_bias(self, x),
            training=not evaluate,
            momentum=1 - self.momentum,
            epsilon=self.epsilon,
        )
        if not evaluate and not self.is_initializing():
            mean.value, variance.value = new_mean, new_variance
        return y


def _scale_and_bias(module: Any, x: Array) -> tuple[Array | None, Array | None]:
    scale, bias = (
        module.param(name, made, x.shape[-1:], jnp.float32) if used else None
        for name, made, used in (
            ("scale", module.scale_init, module.use_scale),
            ("bias", module.bias_init, module.use_bias),
        )
    )
    return scale, bias


class Dropout(nn.Module):
    """Drops with probability `rate`, by random numbers of a seed, a stream and the number of the training step.

    Other than Flax it takes no key but the step, when called, so a training that goes on at this step drops the same.
    stream: another one for each dropout of a network. seed and stream are as in PyTorch and TensorFlow.
    """

    rate: float
    stream: int
    seed: int = 0
    deterministic: bool | None = None

    @nn.compact
    def __call__(self, inputs: Array, deterministic: bool | None = None, step: int | Array | None = None) -> Array:
        if nn.merge_param("deterministic", self.deterministic, deterministic):
            return inputs
        if step is None:
            raise refuse("Dropout", "it needs the number of the training step: dropout(x, step=step)")
        return functional.dropout(inputs, self.rate, dropout_key("Dropout", self.seed, self.stream), step)
