"""Small networks trained by portable numerics and by JAX's float32, five seeds each.

    .venv/jax/bin/python -m benchmarks.accuracy_jax /usr/share/datasets/fashion-mnist [NETWORK ...]

prints a row for each network: what it reaches on data that it was not trained on, mean and standard deviation over the
seeds. Both see the same batches, and draw their first weights from the same seeds.
"""

import math
from functools import cache, partial
from typing import Any

import jax
import optax
from flax import linen as nn
from jax import Array
from jax import numpy as jnp

import repro.portable.jax as portable
from benchmarks import accuracy
from benchmarks.mode_jax import Layers, ResNet18


class Images(nn.Module):
    """ResNet-18 with a quarter of its width, for images [N, 28, 28]."""

    @nn.compact
    def __call__(self, x: Array) -> Array:
        return ResNet18(16, stride=2)(x[..., None])


class Rows(nn.Module):
    """An LSTM that reads an image row by row."""

    @nn.compact
    def __call__(self, x: Array) -> Array:
        return nn.Dense(10)(nn.RNN(nn.OptimizedLSTMCell(64))(x)[:, -1])


class GPT(nn.Module):
    """A transformer over characters."""

    @nn.compact
    def __call__(self, tokens: Array) -> Array:
        characters = nn.Embed(128, 64, embedding_init=nn.initializers.normal(0.02))
        places = self.param("places", nn.initializers.normal(0.02), (accuracy.CONTEXT, 64))
        return characters.attend(Layers(2, 64, 4, causal=True)(characters(tokens) + places))


NETWORKS: dict[str, tuple[str, nn.Module, float]] = {
    "ResNet-18": ("images", Images(), 2e-3),
    "LSTM": ("images", Rows(), 3e-3),
    "GPT": ("text", GPT(), 3e-3),
}
"""Data, network, learning rate."""


@cache
def compiled(name: str) -> tuple[Any, Any, Any]:
    """First variables, a step, and a test."""
    data, network, rate = NETWORKS[name]
    optimizer = optax.adamw(optax.cosine_onecycle_schedule(accuracy.STEPS, rate))

    @jax.jit
    def first(key: Array, x: Array) -> Any:
        variables = network.init(key, x)
        params = variables.pop("params")
        return params, optimizer.init(params), variables

    @partial(jax.jit, donate_argnums=0)
    def step(state: Any, x: Array, y: Array) -> Any:
        params, slots, others = state

        def loss(params: Any) -> tuple[Array, Any]:
            logits, changed = network.apply({"params": params, **others}, x, mutable=list(others))
            return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), changed

        gradient, others = jax.grad(loss, has_aux=True)(params)
        updates, slots = optimizer.update(gradient, slots, params)
        return optax.apply_updates(params, updates), slots, others

    @jax.jit
    def test(state: Any, x: Array, y: Array) -> Array:
        logits = network.apply({"params": state[0], **state[2]}, x)
        if data == "images":
            return 100 * (logits.argmax(-1) == y).mean()
        return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean() / math.log(2)

    return first, step, test


def train(name: str, seed: int, given: list[accuracy.Batch], tested: accuracy.Batch) -> float:
    """Percent of right classes, or bits for each character."""
    first, step, test = compiled(name)
    state = first(jax.random.key(seed), jnp.asarray(given[0][0]))
    for x, y in given:
        state = step(state, x, y)
    return float(test(state, *tested))


if __name__ == "__main__":
    accuracy.main("JAX", {name: data for name, (data, *_) in NETWORKS.items()}, train, portable.enable)
