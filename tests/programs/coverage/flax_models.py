"""Networks of Flax's linen modules, after the kinds of its examples."""

from typing import Any

import jax
import optax
from flax import linen as nn
from flax.core import FrozenDict
from flax.training import train_state
from jax import Array
from jax import numpy as jnp

from programs.coverage.jax_training import Training, images, integers, normal, tokens
from programs.coverage.registry import program

cross_entropy = optax.softmax_cross_entropy_with_integer_labels


class TrainState(train_state.TrainState):
    """With statistics of BatchNorm, and a key of dropout."""

    statistics: Any
    key: Array


def training(
    model: nn.Module, optimizer: optax.GradientTransformation, batches: Any, loss: Any, *inputs: Any, **options: Any
) -> Training:
    """`loss` is of a function that applies the model, and of a batch; `inputs` initialize it."""
    keys = dict(zip(("params", "dropout", "noise"), jax.random.split(jax.random.key(0), 3), strict=True))
    variables = jax.jit(model.init)(keys, *inputs)
    state = TrainState.create(
        apply_fn=model.apply,
        params=variables["params"],
        tx=optimizer,
        statistics=variables.get("batch_stats", FrozenDict()),
        key=jax.random.key(1),
    )

    def step(state: TrainState, batch: Any) -> Any:
        keys = dict(zip(("dropout", "noise"), jax.random.split(jax.random.fold_in(state.key, state.step)), strict=True))

        def value(params: Any) -> Any:
            changed = {}

            def apply(*given: Any, **also: Any) -> Any:
                variables = {"params": params, "batch_stats": state.statistics}
                found, changed["batch_stats"] = state.apply_fn(
                    variables, *given, mutable=["batch_stats"], rngs=keys, **also
                )
                return found

            found = loss(apply, batch)
            return found, changed["batch_stats"].get("batch_stats", state.statistics)

        (found, statistics), gradients = jax.value_and_grad(value, has_aux=True)(state.params)
        return state.apply_gradients(grads=gradients, statistics=statistics), found

    return Training(state, step, batches, **options)


def classified(apply: Any, batch: Any) -> Array:
    x, y = batch
    return cross_entropy(apply(x), y).mean()


# --- images -----------------------------------------------------------------------------------------------------------


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


# --- text -------------------------------------------------------------------------------------------------------------


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


# --- games, graphs ----------------------------------------------------------------------------------------------------


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
            lambda later, delta: (found := delta + 0.9405 * later, found), 0.0, deltas, reverse=True
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


# --- others -----------------------------------------------------------------------------------------------------------


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
        found = jnp.take_along_axis(experts(16)(x), chosen[..., None], 1)
        return nn.Dense(10)((found * (gates / gates.sum(-1, keepdims=True))[..., None]).sum(1))


@program("flax", "mixture of experts")
def mixture() -> Training:
    batches = images(8, 12)
    return training(Mixture(), optax.adamw(1e-2), batches, classified, batches[0][0])
