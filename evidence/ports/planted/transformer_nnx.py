"""A language model of two blocks with rotary embeddings, in Flax NNX.

python transformer_nnx.py DATA.npz [--fault FAULT]
"""

import argparse

import jax
import numpy as np
import optax
from flax import nnx
from jax import numpy as jnp

parser = argparse.ArgumentParser()
parser.add_argument("data")
parser.add_argument("--fault", choices=("gelu", "rotary"))
options = parser.parse_args()
data = np.load(options.data)


def rotate(x: jax.Array) -> jax.Array:
    """Turns each query or key [batch, position, head, 8] by its position: numbers 0 and 4, 1 and 5, ... are a pair."""
    angles = jnp.arange(16.0)[:, None, None] * 10000 ** (-jnp.arange(4) / 4)
    if options.fault == "rotary":  # 0 and 1, 2 and 3, ... are a pair
        first, second = x[..., ::2], x[..., 1::2]
    else:
        first, second = jnp.split(x, 2, -1)
    turned = first * jnp.cos(angles) - second * jnp.sin(angles), second * jnp.cos(angles) + first * jnp.sin(angles)
    return jnp.stack(turned, -1).reshape(x.shape) if options.fault == "rotary" else jnp.concatenate(turned, -1)


class Attention(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.query, self.key, self.value = (
            nnx.LinearGeneral(32, (4, 8), use_bias=False, rngs=rngs) for _ in ("query", "key", "value")
        )
        self.out = nnx.LinearGeneral((4, 8), 32, axis=(-2, -1), use_bias=False, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        q, k, v = rotate(self.query(x)), rotate(self.key(x)), self.value(x)
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(8).astype(np.float32)
        scores = jnp.where(np.tri(16, dtype=bool), scores, -jnp.inf)
        return self.out(jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v))


class MLP(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.fc1, self.fc2 = nnx.Linear(32, 128, rngs=rngs), nnx.Linear(128, 32, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        # JAX' own default approximates the error function by tanh.
        return self.fc2(nnx.gelu(self.fc1(x), approximate=options.fault == "gelu"))


class Block(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.norm1, self.attention = nnx.LayerNorm(32, epsilon=1e-3, rngs=rngs), Attention(rngs)
        self.norm2, self.mlp = nnx.LayerNorm(32, epsilon=1e-3, rngs=rngs), MLP(rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Network(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.embedding = nnx.Embed(40, 32, rngs=rngs)
        self.blocks = nnx.List([Block(rngs), Block(rngs)])
        self.norm = nnx.LayerNorm(32, epsilon=1e-3, rngs=rngs)
        self.head = nnx.Linear(32, 40, use_bias=False, rngs=rngs)

    def __call__(self, tokens: jax.Array) -> jax.Array:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def load(network: Network) -> None:
    """Takes the weights of a PyTorch checkpoint."""
    network.embedding.embedding[...], network.head.kernel[...] = data["embedding.weight"], data["head.weight"].T
    network.norm.scale[...], network.norm.bias[...] = data["norm.weight"], data["norm.bias"]
    for number, block in enumerate(network.blocks):
        name, attention = f"blocks.{number}", block.attention
        for part, array in zip(
            ("query", "key", "value"), np.split(data[f"{name}.attention.qkv.weight"], 3), strict=True
        ):
            getattr(attention, part).kernel[...] = array.T.reshape(32, 4, 8)
        attention.out.kernel[...] = data[f"{name}.attention.out.weight"].T.reshape(4, 8, 32)
        for part in ("norm1", "norm2"):
            norm = getattr(block, part)
            norm.scale[...], norm.bias[...] = data[f"{name}.{part}.weight"], data[f"{name}.{part}.bias"]
        for part in ("fc1", "fc2"):
            dense = getattr(block.mlp, part)
            dense.kernel[...], dense.bias[...] = data[f"{name}.mlp.{part}.weight"].T, data[f"{name}.mlp.{part}.bias"]


@nnx.jit
def train_step(network: Network, optimizer: nnx.Optimizer, tokens: jax.Array, mask: jax.Array) -> jax.Array:
    def mean_loss(network: Network) -> jax.Array:
        each = optax.softmax_cross_entropy_with_integer_labels(network(tokens[:, :-1]), tokens[:, 1:])
        return (each * mask).sum() / mask.sum()

    loss, gradients = nnx.value_and_grad(mean_loss)(network)
    optimizer.update(network, gradients)
    return loss


network = Network(nnx.Rngs(0))
load(network)
optimizer = nnx.Optimizer(network, optax.sgd(0.1, momentum=0.9), wrt=nnx.Param)
batches = zip(np.split(data["tokens"], 3), np.split(data["mask"], 3), strict=True)
print("loss", np.mean([train_step(network, optimizer, *batch) for batch in batches]))
