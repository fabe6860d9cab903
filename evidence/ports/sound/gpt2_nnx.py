"""GPT-2 in Flax NNX, with the names of transformers, whose dense layers are [in, out] as Flax' are.

python gpt2_nnx.py DATA.npz
"""

import argparse

import jax
import numpy as np
import optax
from flax import nnx
from jax import numpy as jnp

parser = argparse.ArgumentParser()
parser.add_argument("data")
options = parser.parse_args()
data = np.load(options.data)


class Attention(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.c_attn, self.c_proj = nnx.Linear(32, 96, rngs=rngs), nnx.Linear(32, 32, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        q, k, v = (part.reshape(*x.shape[:-1], 4, 8) for part in jnp.split(self.c_attn(x), 3, -1))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(8).astype(np.float32)
        shares = jax.nn.softmax(jnp.where(np.tri(x.shape[1], dtype=bool), scores, -jnp.inf))
        return self.c_proj(jnp.einsum("bhqk,bkhd->bqhd", shares, v).reshape(x.shape))


class MLP(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.c_fc, self.c_proj = nnx.Linear(32, 128, rngs=rngs), nnx.Linear(128, 32, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.c_proj(nnx.gelu(self.c_fc(x), approximate=True))


class Block(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.ln_1, self.attn = nnx.LayerNorm(32, epsilon=1e-5, rngs=rngs), Attention(rngs)
        self.ln_2, self.mlp = nnx.LayerNorm(32, epsilon=1e-5, rngs=rngs), MLP(rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT2(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.wte, self.wpe = nnx.Embed(64, 32, rngs=rngs), nnx.Embed(16, 32, rngs=rngs)
        self.h = nnx.List([Block(rngs), Block(rngs)])
        self.ln_f = nnx.LayerNorm(32, epsilon=1e-5, rngs=rngs)

    def __call__(self, tokens: jax.Array) -> jax.Array:
        x = self.wte(tokens) + self.wpe(jnp.arange(tokens.shape[1]))
        for block in self.h:
            x = block(x)
        return self.wte.attend(self.ln_f(x))


def load(network: GPT2) -> None:
    """Takes the weights of a checkpoint of transformers: the names are the same, but for the last word."""
    for path, weight in nnx.to_flat_state(nnx.state(network, nnx.Param)):
        *names, last = map(str, path)
        weight[...] = data[".".join(["transformer", *names, "bias" if last == "bias" else "weight"])]


@nnx.jit
def train_step(network: GPT2, optimizer: nnx.Optimizer, tokens: jax.Array) -> jax.Array:
    def mean_loss(network: GPT2) -> jax.Array:
        logits = network(tokens)[:, :-1]
        return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()

    loss, gradients = nnx.value_and_grad(mean_loss)(network)
    optimizer.update(network, gradients)
    return loss


network = GPT2(nnx.Rngs(0))
load(network)
optimizer = nnx.Optimizer(network, optax.sgd(0.1, momentum=0.9), wrt=nnx.Param)
print("loss", np.mean([train_step(network, optimizer, batch) for batch in np.split(data["tokens"], 3)]))
