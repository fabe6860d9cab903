"""Networks of Haiku's modules, after its examples."""

from typing import Any

import haiku as hk
import jax
import jmp
import optax
from jax import Array, nn
from jax import numpy as jnp

from evidence.coverage.jax_training import Training, images, integers, normal, tokens
from evidence.coverage.registry import program

cross_entropy = optax.softmax_cross_entropy_with_integer_labels


def training(loss: Any, optimizer: Any, batches: Any) -> Training:
    """`loss` is a function of a batch, of Haiku's modules."""
    transformed = hk.transform_with_state(loss)
    weights, state = jax.jit(transformed.init)(jax.random.PRNGKey(0), batches[0])

    def step(results: Any, batch: Any) -> Any:
        weights, state, slots, key = results
        key, own = jax.random.split(key)
        (value, state), gradients = jax.value_and_grad(transformed.apply, has_aux=True)(weights, state, own, batch)
        updates, slots = optimizer.update(gradients, slots, weights)
        return (optax.apply_updates(weights, updates), state, slots, key), value

    return Training((weights, state, optimizer.init(weights), jax.random.PRNGKey(1)), step, batches)


@program("haiku", "mnist, mlp")
def mnist() -> Training:
    def loss(batch: Any) -> Array:
        x, y = batch
        logits = hk.nets.MLP([32, 16, 10])(hk.Flatten()(x), dropout_rate=0.1, rng=hk.next_rng_key())
        return cross_entropy(logits, y).mean()

    return training(loss, optax.adam(1e-3), images(8, 6, 6, 1))


@program("haiku", "resnet")
def resnet() -> Training:
    def loss(batch: Any) -> Array:
        x, y = batch
        model = hk.nets.ResNet(
            (1, 1, 1, 1), 10, {"decay_rate": 0.9}, bottleneck=False, channels_per_group=(8, 8, 16, 16)
        )
        logits = model(x, is_training=True)
        return cross_entropy(logits, y).mean()

    return training(loss, optax.sgd(0.1, 0.9), images(2, 32, 32, 3))


def _transformer(x: Array, width: int = 32) -> Array:
    """Two blocks of attention and dense layers, [N, T] to [N, T, tokens]."""
    initial = hk.initializers.VarianceScaling(1.0)
    y = hk.Embed(31, width)(x) + hk.get_parameter(
        "places", [x.shape[1], width], init=hk.initializers.TruncatedNormal(0.02)
    )
    mask = jnp.tril(jnp.ones((1, 1, x.shape[1], x.shape[1])))
    for _ in range(2):
        normed = hk.LayerNorm(-1, True, True)(y)
        attended = hk.MultiHeadAttention(4, 8, w_init=initial, model_size=width)(normed, normed, normed, mask=mask)
        y = y + hk.dropout(hk.next_rng_key(), 0.1, attended)
        dense = hk.Sequential(
            [hk.RMSNorm(-1), hk.Linear(64, w_init=initial), nn.gelu, hk.Linear(width, w_init=initial)]
        )
        y = y + hk.dropout(hk.next_rng_key(), 0.1, dense(y))
    return hk.Linear(31)(y)


@program("haiku", "transformer")
def transformer() -> Training:
    def loss(batch: Array) -> Array:
        return cross_entropy(_transformer(batch[:, :-1]), batch[:, 1:]).mean()

    return training(loss, optax.chain(optax.clip_by_global_norm(1.0), optax.adam(3e-3, 0.9, 0.99)), tokens(4, 9))


@program("haiku", "lstm of characters")
def lstm() -> Training:
    """Two layers, unrolled by scan; recurrent dropout."""

    def loss(batch: Array) -> Array:
        x = jnp.moveaxis(jax.nn.one_hot(batch, 31), 1, 0)
        core = hk.DeepRNN([hk.LSTM(16), nn.relu, hk.GRU(16), hk.VanillaRNN(8)])
        outputs, _ = hk.dynamic_unroll(core, x[:-1], core.initial_state(len(batch)))
        return cross_entropy(hk.BatchApply(hk.Linear(31))(outputs), jnp.moveaxis(batch, 1, 0)[1:]).mean()

    return training(loss, optax.adam(1e-2), tokens(4, 9))


@program("haiku", "vae")
def vae() -> Training:
    def loss(x: Array) -> Array:
        h = nn.relu(hk.Linear(32)(x))
        mean, spread = hk.Linear(4)(h), jnp.exp(hk.Linear(4)(h))
        z = mean + spread * jax.random.normal(hk.next_rng_key(), mean.shape)
        logits = hk.nets.MLP([32, x.shape[-1]])(z)
        divergence = 0.5 * (-2 * jnp.log(spread) - 1.0 + spread**2 + mean**2).sum(-1)
        return (optax.sigmoid_binary_cross_entropy(logits, (x > 0).astype(jnp.float32)).sum(-1) + divergence).mean()

    return training(loss, optax.adam(1e-3), [normal(8, 36, key=key) for key in range(2)])


@program("haiku", "vq-vae, convolutions")
def vq_vae() -> Training:
    """Codes by moving averages, in the state."""

    def loss(batch: Any) -> Array:
        x, _ = batch
        y = nn.relu(hk.Conv2D(8, 4, 2)(x))
        y = nn.relu(hk.DepthwiseConv2D(1, 3)(y)) + hk.SeparableDepthwiseConv2D(1, 3)(y)
        outputs = hk.nets.VectorQuantizerEMA(8, 16, 0.25, 0.99)(y, is_training=True)
        back = hk.Conv2DTranspose(3, 4, 2)(outputs["quantize"])
        return ((back - x) ** 2).mean() + outputs["loss"]

    return training(loss, optax.adam(3e-3), images(2, 8, 8, 3))


@program("haiku", "mixed precision, bfloat16")
def mixed() -> Training:
    """By a policy of jmp: computed in bfloat16, weights are float32."""
    policy = jmp.get_policy("params=float32,compute=bfloat16,output=float32")
    hk.mixed_precision.set_policy(hk.nets.MLP, policy)

    def loss(batch: Any) -> Array:
        x, y = batch
        return cross_entropy(hk.nets.MLP([32, 10])(x), y).mean()

    return training(loss, optax.adamw(1e-2), [(normal(8, 12, key=key), integers(10, 8, key=key)) for key in range(2)])
