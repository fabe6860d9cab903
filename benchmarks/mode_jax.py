"""Flax networks whose steps `benchmarks.mode` times."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import optax
from flax import linen as nn
from jax import Array
from jax import numpy as jnp

import repro.portable.jax as portable
from benchmarks import mode


def in_training(network: nn.Module) -> bool:
    """True if averages over batches are to be updated."""
    return network.is_mutable_collection("batch_stats")


class Block(nn.Module):
    """Of a ResNet: two convolutions, and a third beside them where the images change."""

    channels: int
    stride: int

    @nn.compact
    def __call__(self, x: Array) -> Array:
        conv = partial(nn.Conv, use_bias=False)
        norm = partial(nn.BatchNorm, not in_training(self), momentum=0.9)
        y = nn.relu(norm()(conv(self.channels, (3, 3), strides=self.stride)(x)))
        y = norm()(conv(self.channels, (3, 3))(y))
        if x.shape != y.shape:
            x = norm()(conv(self.channels, (1, 1), strides=self.stride)(x))
        return nn.relu(x + y)


class ResNet18(nn.Module):
    """K. He et al., Deep residual learning for image recognition, 2016; the first layers are for small images."""

    width: int = 64
    stride: int = 1

    @nn.compact
    def __call__(self, x: Array) -> Array:
        x = nn.Conv(self.width, (3, 3), strides=self.stride, use_bias=False)(x)
        x = nn.relu(nn.BatchNorm(not in_training(self), momentum=0.9)(x))
        for stage in range(4):
            for number in range(2):
                x = Block(self.width * 2**stage, 2 if stage and not number else 1)(x)
        return nn.Dense(10)(x.mean((1, 2)))


class Layers(nn.Module):
    """Layers of a transformer."""

    depth: int
    width: int
    heads: int
    causal: bool

    @nn.compact
    def __call__(self, x: Array) -> Array:
        mask = nn.make_causal_mask(x[..., 0]) if self.causal else None
        for _ in range(self.depth):
            y = nn.LayerNorm()(x)
            x = x + nn.MultiHeadDotProductAttention(self.heads)(y, y, mask=mask)
            x = x + nn.Dense(self.width)(nn.gelu(nn.Dense(4 * self.width)(nn.LayerNorm()(x))))
        return nn.LayerNorm()(x)


class GPT(nn.Module):
    """GPT-2 of four layers."""

    @nn.compact
    def __call__(self, tokens: Array) -> Array:
        embedding = nn.Embed(1024, 256)
        x = embedding(tokens) + nn.Embed(128, 256)(jnp.arange(tokens.shape[1]))
        return embedding.attend(Layers(4, 256, 4, causal=True)(x))


class ViT(nn.Module):
    """ViT-Tiny: 12 layers of 192, for images of 32 x 32 in patches of 4 x 4."""

    @nn.compact
    def __call__(self, x: Array) -> Array:
        x = nn.Conv(192, (4, 4), strides=4)(x).reshape(x.shape[0], -1, 192)
        x = x + self.param("places", nn.initializers.normal(0.02), (1, x.shape[1], 192))
        return nn.Dense(10)(Layers(12, 192, 3, causal=False)(x).mean(1))


class LeNet(nn.Module):
    """The reference trainers' network."""

    @nn.compact
    def __call__(self, x: Array) -> Array:
        for channels in (10, 20):
            x = nn.relu(nn.max_pool(nn.Conv(channels, (5, 5), padding="VALID")(x), (2, 2), (2, 2)))
        return nn.Dense(10)(nn.relu(nn.Dense(50)(x.reshape(x.shape[0], -1))))


def images(*shape: int) -> tuple[Array, Array]:
    return jnp.linspace(-1, 1, math.prod(shape)).reshape(shape), jnp.arange(shape[0]) % 10


def tokens() -> tuple[Array, Array]:
    given = jnp.arange(8 * 129).reshape(8, 129) * 7919 % 1024
    return given[:, :-1], given[:, 1:]


class LSTM(nn.Module):
    @nn.compact
    def __call__(self, x: Array) -> Array:
        return nn.Dense(10)(nn.RNN(nn.OptimizedLSTMCell(64))(x)[:, -1])


class Small(nn.Module):
    @nn.compact
    def __call__(self, x: Array) -> Array:
        return nn.Dense(10)(nn.relu(nn.Dense(64)(nn.relu(nn.Dense(64)(x)))))


def training(
    network: nn.Module, make: Callable[[], tuple[Array, Array]], optimizer: optax.GradientTransformation
) -> mode.Step:
    """A step of a new network."""
    x, y = make()
    variables = jax.jit(network.init)(jax.random.key(0), x)
    weights = variables.pop("params")

    @partial(jax.jit, donate_argnums=0)
    def step(state: Any, x: Array, y: Array) -> tuple[Any, Array]:
        params, slots, others = state

        def loss(params: Any) -> tuple[Array, Any]:
            logits, changed = network.apply({"params": params, **others}, x, mutable=list(others))
            return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), changed

        (value, others), gradient = jax.value_and_grad(loss, has_aux=True)(params)
        updates, slots = optimizer.update(gradient, slots, params)
        return (optax.apply_updates(params, updates), slots, others), value

    held = [(weights, optimizer.init(weights), variables)]

    def once() -> None:
        held[0], value = step(held[0], x, y)
        value.block_until_ready()

    return once


SGD, ADAM = optax.sgd(0.01, 0.9), optax.adamw(1e-3)
NETWORKS: dict[str, Callable[[], mode.Step]] = {
    "ResNet-18": partial(training, ResNet18(), partial(images, 16, 32, 32, 3), SGD),
    "GPT-2": partial(training, GPT(), tokens, ADAM),
    "ViT-Tiny": partial(training, ViT(), partial(images, 16, 32, 32, 3), ADAM),
    "LeNet": partial(training, LeNet(), partial(images, 64, 28, 28, 1), SGD),
    "LSTM": partial(training, LSTM(), partial(images, 16, 32, 32), ADAM),
    "small layers": partial(training, Small(), partial(images, 32, 64), ADAM),
}


if __name__ == "__main__":
    mode.measure(NETWORKS, portable.enable)
