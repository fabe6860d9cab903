"""Networks of Flax's nnx modules, after its guides."""

from typing import Any

import jax
import optax
from flax import nnx
from jax import Array
from jax import numpy as jnp

from evidence.coverage.jax_training import images, integers, normal, tokens
from evidence.coverage.registry import STEPS, program

cross_entropy = optax.softmax_cross_entropy_with_integer_labels


def trained(model: nnx.Module, optimizer: Any, batches: Any, loss: Any, wanted: Any = nnx.Param) -> Any:
    """The states of a model and of its optimizer, after some steps."""
    slots = nnx.Optimizer(model, optimizer, wrt=wanted)

    @nnx.jit
    def step(model: nnx.Module, slots: nnx.Optimizer, batch: Any) -> Array:
        value, gradients = nnx.value_and_grad(loss, argnums=nnx.DiffState(0, wanted))(model, batch)
        slots.update(model, gradients)
        return value

    losses = [step(model, slots, batches[number % len(batches)]) for number in range(STEPS)]
    return nnx.to_pure_dict(nnx.state((model, slots))), losses


def classified(model: Any, batch: Any) -> Array:
    x, y = batch
    return cross_entropy(model(x), y).mean()


class Perceptron(nnx.Module):
    """Layer by layer, dropout and BatchNorm between them."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.first = nnx.Linear(12, 16, rngs=rngs)
        self.norm = nnx.BatchNorm(16, rngs=rngs)
        self.dropout = nnx.Dropout(0.2, rngs=rngs)
        self.last = nnx.Linear(16, 10, rngs=rngs)

    def __call__(self, x: Array) -> Array:
        return self.last(nnx.gelu(self.dropout(self.norm(self.first(x)))))


@program("nnx", "mlp, dropout, batch norm")
def perceptron() -> Any:
    return trained(Perceptron(nnx.Rngs(0)), optax.adam(1e-2), images(8, 12), classified)


class Digits(nnx.Module):
    """The network of the tutorial, smaller."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.conv1 = nnx.Conv(1, 8, (3, 3), rngs=rngs)
        self.norm = nnx.BatchNorm(8, rngs=rngs)
        self.dropout = nnx.Dropout(0.1, rngs=rngs)
        self.conv2 = nnx.Conv(8, 8, (3, 3), rngs=rngs)
        self.linear1 = nnx.Linear(128, 16, rngs=rngs)
        self.linear2 = nnx.Linear(16, 10, rngs=rngs)

    def __call__(self, x: Array) -> Array:
        x = nnx.avg_pool(nnx.relu(self.norm(self.dropout(self.conv1(x)))), (2, 2), (2, 2))
        x = nnx.max_pool(nnx.relu(self.conv2(x)), (2, 2), (2, 2))
        return self.linear2(nnx.relu(self.linear1(x.reshape(len(x), -1))))


@program("nnx", "cnn, dropout, batch norm")
def digits() -> Any:
    return trained(Digits(nnx.Rngs(0)), optax.adamw(5e-3, 0.9), images(4, 16, 16, 1), classified)


class Block(nnx.Module):
    """Of a GPT."""

    def __init__(self, width: int, rngs: nnx.Rngs) -> None:
        self.norms = nnx.List([nnx.LayerNorm(width, rngs=rngs) for _ in range(2)])
        self.attention = nnx.MultiHeadAttention(
            4, width, dropout_rate=0.1, decode=False, deterministic=False, rngs=rngs
        )
        self.layers = nnx.Sequential(
            nnx.Linear(width, 2 * width, rngs=rngs),
            nnx.gelu,
            nnx.Linear(2 * width, width, rngs=rngs),
            nnx.Dropout(0.1, rngs=rngs),
        )

    def __call__(self, x: Array, mask: Array) -> Array:
        x = x + self.attention(self.norms[0](x), mask=mask)
        return x + self.layers(self.norms[1](x))


class GPT(nnx.Module):
    """Two blocks."""

    def __init__(self, rngs: nnx.Rngs, width: int = 32) -> None:
        self.tokens, self.places = nnx.Embed(31, width, rngs=rngs), nnx.Embed(16, width, rngs=rngs)
        self.blocks = nnx.List([Block(width, rngs) for _ in range(2)])
        self.norm = nnx.RMSNorm(width, rngs=rngs)

    def __call__(self, x: Array) -> Array:
        mask = nnx.make_causal_mask(x)
        y = self.tokens(x) + self.places(jnp.arange(x.shape[1]))
        for block in self.blocks:
            y = block(y, mask)
        return self.tokens.attend(self.norm(y))


def next_token(model: GPT, batch: Array) -> Array:
    return cross_entropy(model(batch[:, :-1]), batch[:, 1:]).mean()


@program("nnx", "gpt")
def gpt() -> Any:
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(optax.cosine_decay_schedule(1e-2, 8)))
    return trained(GPT(nnx.Rngs(0)), optimizer, tokens(4, 13), next_token)


class Recurrent(nnx.Module):
    """An LSTM, and a gated unit in both directions."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.words = nnx.Embed(31, 12, rngs=rngs)
        self.lstm = nnx.RNN(nnx.OptimizedLSTMCell(12, 16, rngs=rngs))
        cells = (nnx.GRUCell(16, 8, rngs=rngs) for _ in range(2))
        self.both = nnx.Bidirectional(*map(nnx.RNN, cells))
        self.last = nnx.Linear(16, 10, rngs=rngs)

    def __call__(self, x: Array) -> Array:
        return self.last(self.both(self.lstm(self.words(x)))[:, -1])


@program("nnx", "recurrent")
def recurrent() -> Any:
    batches = [(integers(31, 4, 7, key=key), integers(10, 4, key=key)) for key in range(2)]
    return trained(Recurrent(nnx.Rngs(0)), optax.rmsprop(1e-2), batches, classified)


class Adapted(nnx.Module):
    """Two layers with adapters of low rank; the second layer's inputs are normalized by groups."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.first = nnx.LoRALinear(12, 16, lora_rank=2, rngs=rngs)
        self.norm = nnx.GroupNorm(16, 4, rngs=rngs)
        self.last = nnx.LoRALinear(16, 10, lora_rank=2, rngs=rngs)

    def __call__(self, x: Array) -> Array:
        return self.last(nnx.silu(self.norm(self.first(x))))


@program("nnx", "lora")
def lora() -> Any:
    """Only the adapters are trained."""
    return trained(Adapted(nnx.Rngs(0)), optax.adam(1e-2), images(8, 12), classified, nnx.LoRAParam)


@program("nnx", "ensemble by vmap, layers by scan")
def ensemble() -> Any:
    """Three networks of stacked layers."""

    @nnx.vmap
    def made(key: Array) -> nnx.Linear:
        return nnx.Linear(12, 12, rngs=nnx.Rngs(key))

    layers = made(jax.random.split(jax.random.key(0), 6))

    def loss(layers: nnx.Linear, batch: Any) -> Array:
        @nnx.scan(in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
        def forward(x: Array, layer: nnx.Linear) -> Array:
            return x + nnx.tanh(layer(x))

        x, _ = batch
        return (forward(x, layers) ** 2).mean()

    return trained(layers, optax.sgd(0.1), [(normal(4, 12), None)], loss)
