"""Networks of Flax of images, games and graphs, after its examples."""

from typing import Any

import jax
import optax
from flax import linen as nn
from jax import Array
from jax import numpy as jnp

from evidence.coverage.flax_training import classified, cross_entropy, training
from evidence.coverage.jax_training import Training, images, integers, normal
from evidence.coverage.registry import program


class Digits(nn.Module):
    """Two convolutions, two dense layers."""

    dtype: Any = jnp.float32

    @nn.compact
    def __call__(self, x: Array) -> Array:
        for features in (8, 16):
            x = nn.avg_pool(nn.relu(nn.Conv(features, (3, 3), dtype=self.dtype)(x)), (2, 2), (2, 2))
        x = nn.relu(nn.Dense(32, dtype=self.dtype)(x.reshape(len(x), -1)))
        return nn.Dense(10, dtype=self.dtype)(x)


@program("flax", "mnist")
def mnist() -> Training:
    batches = images(4, 16, 16, 1)
    return training(Digits(), optax.sgd(0.1, 0.9), batches, classified, batches[0][0])


@program("flax", "mnist, bfloat16")
def mnist_bfloat16() -> Training:
    """Weights are float32; computed in bfloat16."""
    batches = images(4, 16, 16, 1)
    return training(Digits(jnp.bfloat16), optax.adamw(1e-3), batches, classified, batches[0][0])


class Residual(nn.Module):
    """Convolutions with BatchNorm, whose last scale begins with zero."""

    features: int
    stride: int

    @nn.compact
    def __call__(self, x: Array) -> Array:
        norm = lambda **options: nn.BatchNorm(use_running_average=False, momentum=0.9, **options)  # noqa: E731
        y = nn.relu(norm()(nn.Conv(self.features, (3, 3), self.stride, use_bias=False)(x)))
        y = norm(scale_init=nn.initializers.zeros)(nn.Conv(self.features, (3, 3), use_bias=False)(y))
        if y.shape != x.shape:
            x = norm()(nn.Conv(self.features, (1, 1), self.stride, use_bias=False)(x))
        return nn.relu(x + y)


class ResNet(nn.Module):
    """Two stages."""

    @nn.compact
    def __call__(self, x: Array) -> Array:
        x = nn.Conv(8, (7, 7), 2, padding=[(3, 3), (3, 3)], use_bias=False)(x)
        x = nn.max_pool(nn.relu(nn.BatchNorm(use_running_average=False)(x)), (3, 3), (2, 2), "SAME")
        for features, stride in ((8, 1), (16, 2)):
            x = Residual(features, stride)(x)
        return nn.Dense(10)(x.mean((1, 2)))


@program("flax", "imagenet, resnet")
def resnet() -> Training:
    """With weight decay in the loss, and a cosine schedule."""
    batches = images(4, 32, 32, 3)
    rate = optax.warmup_cosine_decay_schedule(0.0, 0.1, 2, 10)
    return training(ResNet(), optax.sgd(rate, 0.9, nesterov=True), batches, classified, batches[0][0])


class Separable(nn.Module):
    """Depthwise, transposed and dilated convolutions; GroupNorm, InstanceNorm, squeeze and excitation."""

    @nn.compact
    def __call__(self, x: Array) -> Array:
        x = nn.hard_swish(nn.GroupNorm(2)(nn.Conv(8, (3, 3), 2)(x)))
        x = nn.silu(nn.InstanceNorm()(nn.Conv(8, (3, 3), feature_group_count=8)(x)))
        x = x * nn.sigmoid(nn.Dense(8)(nn.relu(nn.Dense(4)(x.mean((1, 2), keepdims=True)))))
        x = nn.leaky_relu(nn.ConvTranspose(6, (3, 3), (2, 2))(x))
        x = nn.softplus(nn.WeightNorm(nn.Conv(8, (3, 3), kernel_dilation=2))(x))
        return nn.Dense(10)(nn.max_pool(x, (4, 4), (4, 4)).reshape(len(x), -1))


@program("flax", "separable convolutions")
def separable() -> Training:
    batches = images(2, 16, 16, 3)
    return training(Separable(), optax.rmsprop(1e-3, momentum=0.9), batches, classified, batches[0][0])


class Autoencoder(nn.Module):
    """Variational."""

    @nn.compact
    def __call__(self, x: Array) -> tuple[Array, Array, Array]:
        h = nn.relu(nn.Dense(32)(x))
        mean, logvar = nn.Dense(4)(h), nn.Dense(4)(h)
        z = mean + jnp.exp(0.5 * logvar) * jax.random.normal(self.make_rng("noise"), mean.shape)
        return nn.Dense(x.shape[-1])(nn.relu(nn.Dense(32)(z))), mean, logvar


@program("flax", "vae")
def vae() -> Training:
    def loss(apply: Any, x: Array) -> Array:
        logits, mean, logvar = apply(x)
        wanted = (x > 0).astype(jnp.float32)
        reconstruction = -(wanted * nn.log_sigmoid(logits) + (1 - wanted) * jnp.log(-jnp.expm1(nn.log_sigmoid(logits))))
        divergence = -0.5 * jnp.sum(1 + logvar - mean**2 - jnp.exp(logvar), -1)
        return reconstruction.sum(-1).mean() + divergence.mean()

    batches = [normal(8, 64, key=key) for key in range(2)]
    return training(Autoencoder(), optax.adam(1e-3), batches, loss, batches[0])


class ActorCritic(nn.Module):
    """Of frames: the logarithms of probabilities, and a value."""

    @nn.compact
    def __call__(self, x: Array) -> tuple[Array, Array]:
        x = x.astype(jnp.float32) / 255.0
        for features, size, stride in ((8, 8, 4), (16, 4, 2), (16, 3, 1)):
            x = nn.relu(nn.Conv(features, (size, size), stride)(x))
        x = nn.relu(nn.Dense(32)(x.reshape(len(x), -1)))
        return nn.log_softmax(nn.Dense(6)(x)), nn.Dense(1)(x)[:, 0]


@program("flax", "ppo")
def ppo() -> Training:
    """Advantages by a scan; clipped ratios, an entropy."""
    frames = [integers(256, 5, 42, 42, 4, key=key).astype("uint8") for key in range(2)]
    batches = [(x, integers(6, 4, key=key), normal(4, key=key)) for key, x in enumerate(frames)]

    def loss(apply: Any, batch: Any) -> Array:
        x, actions, rewards = batch
        probabilities, values = apply(x)
        before = jax.lax.stop_gradient(jnp.take_along_axis(probabilities[:-1], actions[:, None], 1)[:, 0]) - 0.1
        deltas = jax.lax.stop_gradient(rewards + 0.99 * values[1:] - values[:-1])
        _, advantages = jax.lax.scan(
            lambda later, delta: (outputs := delta + 0.9405 * later, outputs), 0.0, deltas, reverse=True
        )
        returns = advantages + jax.lax.stop_gradient(values[:-1])
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        ratios = jnp.exp(jnp.take_along_axis(probabilities[:-1], actions[:, None], 1)[:, 0] - before)
        clipped = jnp.minimum(ratios * advantages, jnp.clip(ratios, 0.9, 1.1) * advantages)
        entropy = -(jnp.exp(probabilities) * probabilities).sum(1).mean()
        return 0.5 * ((returns - values[:-1]) ** 2).mean() - clipped.mean() - 0.01 * entropy

    return training(ActorCritic(), optax.adam(2.5e-4), batches, loss, frames[0])


class GraphNetwork(nn.Module):
    """Messages along edges, summed, averaged and weighted by attention at their ends."""

    @nn.compact
    def __call__(self, nodes: Array, senders: Array, receivers: Array) -> Array:
        count = len(nodes)
        for _ in range(2):
            messages = nn.relu(nn.Dense(8)(jnp.concatenate([nodes[senders], nodes[receivers]], -1)))
            scores = nn.Dense(1)(messages)[:, 0]
            most = jax.ops.segment_max(scores, receivers, count)
            weights = jnp.exp(scores - most[receivers])
            weights = weights / jax.ops.segment_sum(weights, receivers, count)[receivers]
            pooled = jax.ops.segment_sum(messages * weights[:, None], receivers, count)
            nodes = nn.LayerNorm()(nn.Dense(8)(jnp.concatenate([nodes, pooled], -1)))
        return nn.Dense(3)(nodes)


@program("flax", "graph network")
def graph() -> Training:
    edges = jnp.concatenate([integers(10, 30, key=7), jnp.arange(10)])
    ends = jnp.concatenate([integers(10, 30, key=8), jnp.arange(10)])
    batches = [(normal(10, 5, key=key), integers(3, 10, key=key)) for key in range(2)]

    def loss(apply: Any, batch: Any) -> Array:
        nodes, labels = batch
        return cross_entropy(apply(nodes, edges, ends), labels).mean()

    return training(GraphNetwork(), optax.adam(1e-2), batches, loss, batches[0][0], edges, ends)
