"""Networks of Equinox's modules, after its examples."""

import functools
from typing import Any

import equinox as eqx
import jax
import optax
from jax import Array, lax, nn
from jax import numpy as jnp
from jax import random as jr

from evidence.coverage.jax_training import integers, normal, tokens
from evidence.coverage.registry import STEPS, program


def trained(model: Any, optimizer: Any, batches: Any, loss: Any) -> Any:
    """Model, slots of the optimizer and losses, after some steps."""
    slots = optimizer.init(eqx.filter(model, eqx.is_inexact_array))

    @eqx.filter_jit
    def step(model: Any, slots: Any, batch: Any, key: Array) -> Any:
        value, gradients = eqx.filter_value_and_grad(loss)(model, batch, key)
        updates, slots = optimizer.update(gradients, slots, eqx.filter(model, eqx.is_inexact_array))
        return eqx.apply_updates(model, updates), slots, value

    losses = []
    for number in range(STEPS):
        key = jr.fold_in(jr.key(1), number)
        model, slots, value = step(model, slots, batches[number % len(batches)], key)
        losses.append(value)
    return eqx.filter((model, slots, losses), eqx.is_array)


def classified(model: Any, batch: Any, _: Array) -> Array:
    x, y = batch
    return optax.softmax_cross_entropy_with_integer_labels(jax.vmap(model)(x), y).mean()


@program("equinox", "mlp")
def mlp() -> Any:
    model = eqx.nn.MLP(8, 10, 16, 2, activation=nn.softplus, key=jr.key(0))
    batches = [(normal(8, 8, key=key), integers(10, 8, key=key)) for key in range(2)]
    return trained(model, optax.adam(1e-2), batches, classified)


@program("equinox", "cnn")
def cnn() -> Any:
    keys = jr.split(jr.key(0), 4)
    model = eqx.nn.Sequential(
        [
            eqx.nn.Conv2d(1, 3, kernel_size=4, key=keys[0]),
            eqx.nn.MaxPool2d(kernel_size=2),
            eqx.nn.Lambda(nn.relu),
            eqx.nn.Lambda(jnp.ravel),
            eqx.nn.Linear(432, 16, key=keys[1]),
            eqx.nn.Lambda(nn.sigmoid),
            eqx.nn.Linear(16, 10, key=keys[2]),
            eqx.nn.Lambda(nn.log_softmax),
        ]
    )
    batches = [(normal(4, 1, 16, 16, key=key), integers(10, 4, key=key)) for key in range(2)]
    return trained(model, optax.adamw(3e-3), batches, classified)


@program("equinox", "convolutions, batch norm")
def batch_norm() -> Any:
    """A state beside the model; pooling of several kinds, a transposed convolution."""
    keys = jr.split(jr.key(0), 4)

    def made() -> Any:
        return eqx.nn.Sequential(
            [
                eqx.nn.Conv1d(2, 8, 3, padding=1, key=keys[0]),
                eqx.nn.BatchNorm(8, "batch", mode="batch"),
                eqx.nn.Lambda(eqx.nn.PReLU()),
                eqx.nn.AvgPool1d(2, 2),
                eqx.nn.ConvTranspose1d(8, 4, 3, 2, key=keys[1]),
                eqx.nn.GroupNorm(2, 4),
                eqx.nn.AdaptiveAvgPool1d(4),
                eqx.nn.Lambda(jnp.ravel),
                eqx.nn.Linear(16, 10, key=keys[2]),
            ]
        )

    model, state = eqx.nn.make_with_state(made)()
    batches = [(normal(4, 2, 16, key=key), integers(10, 4, key=key)) for key in range(2)]
    optimizer = optax.sgd(0.1, 0.9)
    slots = optimizer.init(eqx.filter(model, eqx.is_inexact_array))

    @eqx.filter_jit
    def step(model: Any, state: Any, slots: Any, batch: Any) -> Any:
        def loss(model: Any) -> Any:
            x, y = batch
            outputs, after = jax.vmap(model, axis_name="batch", in_axes=(0, None), out_axes=(0, None))(x, state)
            return optax.softmax_cross_entropy_with_integer_labels(outputs, y).mean(), after

        (_, state), gradients = eqx.filter_value_and_grad(loss, has_aux=True)(model)
        updates, slots = optimizer.update(gradients, slots)
        return eqx.apply_updates(model, updates), state, slots

    for number in range(STEPS):
        model, state, slots = step(model, state, slots, batches[number % 2])
    return eqx.filter((model, slots, state), eqx.is_array)


class Recurrent(eqx.Module):
    """A gated unit, over the steps of one sample."""

    cell: eqx.nn.GRUCell
    other: eqx.nn.LSTMCell
    last: eqx.nn.Linear

    def __init__(self, key: Array) -> None:
        keys = jr.split(key, 3)
        self.cell = eqx.nn.GRUCell(2, 16, key=keys[0])
        self.other = eqx.nn.LSTMCell(2, 16, key=keys[1])
        self.last = eqx.nn.Linear(16, 1, key=keys[2])

    def __call__(self, x: Array) -> Array:
        hidden, _ = lax.scan(lambda carry, x: (self.cell(x, carry), None), jnp.zeros(16), x)
        other, _ = lax.scan(lambda carry, x: (self.other(x, carry), None), (jnp.zeros(16), jnp.zeros(16)), x)
        return nn.sigmoid(self.last(hidden + other[0]))[0]


@program("equinox", "rnn, gru and lstm cells")
def rnn() -> Any:
    batches = [(normal(4, 8, 2, key=key), integers(2, 4, key=key)) for key in range(2)]

    def loss(model: Any, batch: Any, _: Array) -> Array:
        x, y = batch
        outputs = jax.vmap(model)(x)
        return -jnp.mean(y * jnp.log(outputs) + (1 - y) * jnp.log(1 - outputs))

    return trained(Recurrent(jr.key(0)), optax.adam(3e-3), batches, loss)


class Mixer(eqx.Module):
    """Of patches, with a time as a further channel."""

    first: eqx.nn.Conv2d
    last: eqx.nn.ConvTranspose2d
    patches: list
    channels: list
    norms: list

    def __init__(self, key: Array) -> None:
        keys = jr.split(key, 6)
        self.first = eqx.nn.Conv2d(2, 8, 4, stride=4, key=keys[0])
        self.last = eqx.nn.ConvTranspose2d(8, 1, 4, stride=4, key=keys[1])
        self.patches = [eqx.nn.MLP(9, 9, 16, 1, activation=nn.gelu, key=key) for key in keys[2:4]]
        self.channels = [eqx.nn.MLP(8, 8, 16, 1, activation=nn.gelu, key=key) for key in keys[4:6]]
        self.norms = [eqx.nn.LayerNorm((8, 9)) for _ in range(2)]

    def __call__(self, time: Array, x: Array) -> Array:
        height, width = x.shape[1:]
        y = self.first(jnp.concatenate([x, jnp.full((1, height, width), time / 10.0)]))
        shape = y.shape
        y = y.reshape(8, -1)
        for patch, channel, norm in zip(self.patches, self.channels, self.norms, strict=True):
            y = y + jax.vmap(patch)(norm(y))
            y = y + jax.vmap(channel, 1, 1)(norm(y))
        return self.last(y.reshape(shape))


@program("equinox", "score-based diffusion")
def diffusion() -> Any:
    """Of a stochastic equation whose noise grows."""

    def of_one(model: Any, x: Array, time: Array, key: Array) -> Array:
        mean = x * jnp.exp(-0.5 * time)
        spread = jnp.sqrt(jnp.maximum(1.0 - jnp.exp(-time), 1e-5))
        noise = jr.normal(key, x.shape)
        return (1 - jnp.exp(-time)) * ((model(time, mean + spread * noise) + noise / spread) ** 2).mean()

    def loss(model: Any, batch: Array, key: Array) -> Array:
        first, second = jr.split(key)
        times = jr.uniform(first, (len(batch),), maxval=10.0 / len(batch)) + 10.0 / len(batch) * jnp.arange(len(batch))
        return jax.vmap(functools.partial(of_one, model))(batch, times, jr.split(second, len(batch))).mean()

    batches = [normal(4, 1, 12, 12, key=key) for key in range(2)]
    return trained(Mixer(jr.key(0)), optax.adabelief(3e-4), batches, loss)


@program("equinox", "neural ode")
def neural_ode() -> Any:
    """Steps of Runge and Kutta's; gradients through a scan, and through a while loop of Heun's."""
    model = eqx.nn.MLP(2, 2, 16, 2, activation=nn.softplus, key=jr.key(0))
    batches = [normal(4, 2, key=key) for key in range(2)]

    def step(model: Any, x: Array, h: float) -> Array:
        k1 = model(x)
        k2 = model(x + 0.5 * h * k1)
        k3 = model(x + 0.5 * h * k2)
        k4 = model(x + h * k3)
        return x + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)

    def loss(model: Any, x: Array, _: Array) -> Array:
        path = jax.vmap(lambda x: lax.scan(lambda x, _: (step(model, x, 0.1), x), x, length=10)[1])(x)
        times = jnp.arange(10) * 0.1
        wanted = x[:, None] * jnp.stack([jnp.cos(times), jnp.exp(-times)], -1)
        return ((path - wanted) ** 2).mean()

    return trained(model, optax.adabelief(3e-3), batches, loss)


class Encoder(eqx.Module):
    """A layer of BERT."""

    attention: eqx.nn.MultiheadAttention
    norms: list
    up: eqx.nn.Linear
    down: eqx.nn.Linear
    dropout: eqx.nn.Dropout

    def __init__(self, width: int, key: Array) -> None:
        keys = jr.split(key, 3)
        self.attention = eqx.nn.MultiheadAttention(4, width, dropout_p=0.1, key=keys[0])
        self.norms = [eqx.nn.LayerNorm(width), eqx.nn.RMSNorm(width)]
        self.up = eqx.nn.Linear(width, 2 * width, key=keys[1])
        self.down = eqx.nn.Linear(2 * width, width, key=keys[2])
        self.dropout = eqx.nn.Dropout(0.1)

    def __call__(self, x: Array, mask: Array, key: Array) -> Array:
        keys = jr.split(key)
        attended = self.attention(x, x, x, mask=mask[None, :] & mask[:, None], key=keys[0])
        x = jax.vmap(self.norms[0])(x + attended)
        y = self.dropout(jax.vmap(lambda x: self.down(nn.gelu(self.up(x))))(x), key=keys[1])
        return jax.vmap(self.norms[1])(x + y)


class Bert(eqx.Module):
    """Words, places and segments; layers; a class by the first token."""

    words: eqx.nn.Embedding
    places: eqx.nn.Embedding
    layers: list
    pooler: eqx.nn.Linear
    last: eqx.nn.Linear

    def __init__(self, key: Array, width: int = 16) -> None:
        keys = jr.split(key, 6)
        self.words, self.places = (eqx.nn.Embedding(31, width, key=key) for key in keys[:2])
        self.layers = [Encoder(width, key) for key in keys[2:4]]
        self.pooler = eqx.nn.Linear(width, width, key=keys[4])
        self.last = eqx.nn.Linear(width, 2, key=keys[5])

    def __call__(self, x: Array, key: Array) -> Array:
        y = jax.vmap(self.words)(x) + jax.vmap(self.places)(jnp.arange(len(x)))
        for layer, each in zip(self.layers, jr.split(key), strict=True):
            y = layer(y, x > 3, each)
        return self.last(jnp.tanh(self.pooler(y[0])))


@program("equinox", "bert")
def bert() -> Any:
    def loss(model: Any, batch: Array, key: Array) -> Array:
        outputs = jax.vmap(model)(batch, jr.split(key, len(batch)))
        return optax.softmax_cross_entropy_with_integer_labels(outputs, batch[:, 0] % 2).mean()

    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))
    return trained(Bert(jr.key(0)), optimizer, tokens(4, 9), loss)


@program("equinox", "rotary attention, weight norm")
def rotary() -> Any:
    keys = jr.split(jr.key(0), 4)
    rope = eqx.nn.RotaryPositionalEmbedding(8)
    layers = [eqx.nn.WeightNorm(eqx.nn.Linear(8, 8, key=key)) for key in keys[:3]]

    def loss(layers: Any, x: Array, _: Array) -> Array:
        q, k, v = (jax.vmap(layer)(x) for layer in layers)
        scores = nn.softmax(jax.vmap(rope, 1, 1)(q[:, None])[:, 0] @ rope(k).T / 8.0**0.5)
        return jnp.mean((scores @ v - x) ** 2)

    return trained(layers, optax.lamb(1e-2), [normal(6, 8)], loss)
