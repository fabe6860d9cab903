"""Networks of Flax of text, and of parts in unusual numbers, after its examples."""

from typing import Any

import jax
import optax
from flax import linen as nn
from jax import Array
from jax import numpy as jnp

from evidence.coverage.flax_training import classified, cross_entropy, training
from evidence.coverage.jax_training import Training, images, integers, normal, tokens
from evidence.coverage.registry import program


class Block(nn.Module):
    """Of a transformer, with dropout."""

    width: int
    decode: bool = True

    @nn.compact
    def __call__(self, x: Array, mask: Array | None = None) -> Array:
        attention = nn.MultiHeadDotProductAttention(4, dropout_rate=0.1, deterministic=False)
        x = x + nn.Dropout(0.1, deterministic=False)(attention(nn.LayerNorm()(x), mask=mask))
        y = nn.Dense(self.width)(nn.gelu(nn.Dense(4 * self.width)(nn.RMSNorm()(x))))
        return x + nn.Dropout(0.1, deterministic=False)(y)


class LanguageModel(nn.Module):
    """Predicts the next token; its embedding is its last layer, too."""

    layers: int = 2
    vocabulary: int = 31
    width: int = 32
    recomputed: bool = False

    @nn.compact
    def __call__(self, x: Array) -> Array:
        embedding = nn.Embed(self.vocabulary, self.width, embedding_init=nn.initializers.normal(1.0))
        places = jnp.arange(x.shape[1])[:, None] / 10000.0 ** (jnp.arange(0, self.width, 2) / self.width)
        y = embedding(x) + jnp.concatenate([jnp.sin(places), jnp.cos(places)], -1)
        block = nn.remat(Block) if self.recomputed else Block
        for _ in range(self.layers):
            y = block(self.width)(y, nn.make_causal_mask(x))
        return embedding.attend(nn.LayerNorm()(y))


def next_token(apply: Any, batch: Array) -> Array:
    weights = batch[:, 1:] > 0
    return (cross_entropy(apply(batch[:, :-1]), batch[:, 1:]) * weights).sum() / weights.sum()


@program("flax", "lm1b, transformer")
def lm1b() -> Training:
    """A rate by the root of the step, clipped gradients."""
    optimizer = optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.adamw(lambda step: 0.05 * jnp.minimum(1.0, step / 3) / jnp.sqrt(jnp.maximum(step, 3)), b2=0.98),
    )
    batches = tokens(4, 17)
    return training(LanguageModel(), optimizer, batches, next_token, batches[0])


@program("flax", "lm1b, transformer, recomputed")
def recomputed() -> Training:
    batches = tokens(4, 17)
    return training(LanguageModel(recomputed=True), optax.adafactor(1e-2), batches, next_token, batches[0])


class Scanned(nn.Module):
    """Layers of one block, by scan, with an axis of weights."""

    @nn.compact
    def __call__(self, x: Array) -> Array:
        y = nn.Embed(31, 32)(x)
        blocks = nn.scan(
            lambda block, carry, _: (block(carry), None),
            variable_axes={"params": 0},
            split_rngs={"params": True, "dropout": True},
            length=3,
        )
        y, _ = blocks(Block(32), y, None)
        return nn.Dense(31)(y)


@program("flax", "transformer, scanned layers")
def scanned() -> Training:
    batches = tokens(2, 9)
    return training(Scanned(), optax.lion(1e-3), batches, next_token, batches[0])


class Seq2seq(nn.Module):
    """An LSTM that reads, and one that writes."""

    @nn.compact
    def __call__(self, x: Array, y: Array) -> Array:
        carry, _ = nn.RNN(nn.LSTMCell(16), return_carry=True)(nn.Dense(12)(x), seq_lengths=jnp.array([5, 7, 3]))
        return nn.Dense(y.shape[-1])(nn.RNN(nn.OptimizedLSTMCell(16))(y, initial_carry=carry))


@program("flax", "seq2seq, lstm")
def seq2seq() -> Training:
    """Orthogonal recurrent weights."""
    batches = [(integers(9, 3, 7, key=key), integers(9, 3, 5, key=key + 2)) for key in range(2)]

    def loss(apply: Any, batch: Any) -> Array:
        x, y = (jax.nn.one_hot(each, 9) for each in batch)
        return optax.softmax_cross_entropy(apply(x, y[:, :-1]), y[:, 1:]).mean()

    inputs = jnp.zeros((3, 7, 9)), jnp.zeros((3, 4, 9))
    return training(Seq2seq(), optax.adam(1e-2), batches, loss, *inputs)


class Sentiment(nn.Module):
    """Words in both directions, weighted by attention; recurrent cells of other kinds."""

    cell: Any

    @nn.compact
    def __call__(self, x: Array) -> Array:
        words = nn.Dropout(0.3, broadcast_dims=(1,), deterministic=False)(nn.Embed(31, 16)(x))
        states = nn.Bidirectional(nn.RNN(self.cell(16)), nn.RNN(self.cell(16)))(words)
        weights = nn.softmax(nn.Dense(1, use_bias=False)(nn.tanh(nn.Dense(8)(states))), 1)
        return nn.Dense(1)(nn.relu(nn.Dense(8)((weights * states).sum(1))))[:, 0]


def _sentiment(cell: Any) -> Training:
    batches = [(integers(31, 4, 9, key=key), integers(2, 4, key=key)) for key in range(2)]

    def loss(apply: Any, batch: Any) -> Array:
        x, y = batch
        return optax.sigmoid_binary_cross_entropy(apply(x), y).mean()

    return training(Sentiment(cell), optax.adagrad(0.1), batches, loss, batches[0][0])


@program("flax", "sst2, lstm in both directions")
def sst2() -> Training:
    return _sentiment(nn.OptimizedLSTMCell)


@program("flax", "sst2, gru in both directions")
def sst2_gru() -> Training:
    return _sentiment(nn.GRUCell)


class ConvLSTM(nn.Module):
    """Over frames, with a minimal gated unit behind it."""

    @nn.compact
    def __call__(self, x: Array) -> Array:
        frames = nn.RNN(nn.ConvLSTMCell(4, (3, 3)))(x)
        return nn.Dense(10)(nn.RNN(nn.MGUCell(8))(frames.mean((2, 3)))[:, -1])


@program("flax", "convolutional lstm")
def conv_lstm() -> Training:
    batches = [(normal(2, 3, 8, 8, 2, key=key), integers(10, 2, key=key)) for key in range(2)]
    return training(ConvLSTM(), optax.nadam(1e-3), batches, classified, batches[0][0])


class Activations(nn.Module):
    """Flax's activations, one after another; SpectralNorm; initializers of many kinds."""

    @nn.compact
    def __call__(self, x: Array) -> Array:
        functions: Any = (
            nn.celu,
            nn.elu,
            nn.gelu,
            nn.hard_tanh,
            nn.selu,
            nn.swish,
            nn.relu6,
            nn.log_sigmoid,
            nn.soft_sign,
        )
        functions = (*functions, nn.tanh, nn.glu, jax.nn.mish, jax.nn.squareplus, nn.standardize, nn.PReLU())
        made = nn.initializers
        kinds = made.orthogonal(), made.truncated_normal(), made.he_uniform()
        for number, function in enumerate(functions):
            x = nn.SpectralNorm(nn.Dense(16, kernel_init=kinds[number % 3]))(x, update_stats=True)
            x = function(x) + x[..., : 8 if function is nn.glu else None]
        return nn.DenseGeneral((2, 5), kernel_init=made.variance_scaling(1.0, "fan_avg", "uniform"))(x).reshape(-1, 10)


@program("flax", "activations, initializers, spectral norm")
def activations() -> Training:
    batches = images(4, 8)
    return training(Activations(), optax.sgd(0.01), batches, classified, batches[0][0])


class Mixture(nn.Module):
    """Experts, of which each token has the best two."""

    @nn.compact
    def __call__(self, x: Array) -> Array:
        gates, chosen = jax.lax.top_k(nn.softmax(nn.Dense(4)(x)), 2)
        experts = nn.vmap(
            nn.Dense, variable_axes={"params": 0}, split_rngs={"params": True}, in_axes=None, out_axes=1, axis_size=4
        )
        result = jnp.take_along_axis(experts(16)(x), chosen[..., None], 1)
        return nn.Dense(10)((result * (gates / gates.sum(-1, keepdims=True))[..., None]).sum(1))


@program("flax", "mixture of experts")
def mixture() -> Training:
    batches = images(8, 12)
    return training(Mixture(), optax.adamw(1e-2), batches, classified, batches[0][0])
