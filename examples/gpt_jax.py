"""A GPT in JAX, in portable numerics: the network, one training step, and a trainer.

    python examples/gpt_jax.py --steps 20

The counterparts are gpt_pytorch.py and gpt_tensorflow.py: the same functions in the same order, and the
same fingerprint.
"""

from typing import Any

import common
import gpt
import jax
import numpy as np
from flax import linen as nn
from flax.traverse_util import unflatten_dict
from jax import Array
from jax import numpy as jnp

from repro.errors import UsageError
from repro.portable.backends.checks import jax as checks
from repro.portable.backends.jax import Backend
from repro.portable.definitions.ranks import SINGLE_PROCESS, SingleProcess
from repro.portable.library.jax import functional, layers, optim
from repro.trainers.loop.config import Params
from repro.trainers.loop.ranks import RankInfo
from repro.trainers.native.jax.ranks import join, run


class GPT(nn.Module):
    @nn.compact
    def __call__(self, tokens: Array) -> Array:
        """Tokens, int [B, T] -> logits of the ones that follow, float32 [B, T, characters]."""
        embedding = layers.Embed(*gpt.WEIGHTS["tokens.embedding"], name="tokens")
        x = embedding(tokens)
        for layer in range(gpt.LAYERS):
            x = Block(name=f"block{layer}")(x)
        return embedding.attend(layers.LayerNorm(gpt.EPSILON, name="norm")(x))


class Block(nn.Module):
    @nn.compact
    def __call__(self, x: Array) -> Array:
        """[B, T, C] -> [B, T, C]."""
        norm1 = layers.LayerNorm(gpt.EPSILON, name="norm1")
        qkv = layers.Dense(3 * gpt.WIDTH, name="qkv")
        out = layers.Dense(gpt.WIDTH, name="out")
        norm2 = layers.LayerNorm(gpt.EPSILON, name="norm2")
        up = layers.Dense(4 * gpt.WIDTH, name="up")
        down = layers.Dense(gpt.WIDTH, name="down")

        x = functional.add(x, out(attend(qkv(norm1(x)))))
        return functional.add(x, down(functional.gelu(up(norm2(x)))))


def attend(qkv: Array) -> Array:
    """Queries, keys and values, [B, T, 3 C] -> [B, T, C]."""
    q, k, v = qkv.reshape(*qkv.shape[:2], 3, gpt.HEADS, -1).transpose(2, 0, 3, 1, 4)  # [B, heads, T, C / heads] each
    y = functional.scaled_dot_product_attention(functional.rotary(q), functional.rotary(k), v, is_causal=True)
    return y.swapaxes(1, 2).reshape(*y.shape[::2], -1)


class Trainer:
    """Trains the network."""

    def __init__(self, params: Params, mode: common.Mode, rank_info: RankInfo | None) -> None:
        eager = mode == "eager"
        if eager and rank_info:
            raise UsageError("--mode=eager: JAX shares a batch in compiled code only; leave it out, or --ranks")
        jax.config.update("jax_enable_x64", True)
        jax.config.update("jax_disable_jit", eager)
        self.ranks = join(rank_info, params)
        self.sharing = SINGLE_PROCESS if eager else self.ranks.share(gpt.BATCH)[1]  # ranks, or threads of this process
        checks.self_check(params.engine)
        self.network = GPT()
        self.weights: common.Arrays = {}  # load_state() fills these two
        self.slots: dict[str, Any] = {}
        self.optimizer = optim.adamw(gpt.PEAK, *gpt.BETAS, weight_decay=gpt.DECAY)
        self.compiled = jax.jit(self._step, static_argnums=0)

    def step(self, rate: float, inputs: np.ndarray, targets: np.ndarray) -> float:
        """Trains on a batch, int32 [B, T] both, and returns its loss."""
        whole, divided = (self.weights, self.slots, rate), (inputs[None], targets[None])
        self.weights, self.slots, loss = run(self.sharing, self.compiled, whole, divided)
        return float(loss)

    def _step(self, ranks: SingleProcess, weights, slots, rate: Array, inputs: Array, targets: Array):
        Backend.ranks = ranks
        loss, gradients = jax.value_and_grad(self._loss)(weights, inputs[0], targets[0])
        gradients, _ = functional.clip_by_global_norm(gradients, gpt.LIMIT)
        weights, slots = self.optimizer.update(weights, slots, gradients, rate)
        return weights, slots, loss

    def evaluate(self, inputs: np.ndarray, targets: np.ndarray) -> float:
        """The mean loss of these."""
        Backend.ranks = SINGLE_PROCESS
        return float(jax.jit(self._loss)(self.weights, inputs, targets))

    def _loss(self, weights, inputs: Array, targets: Array) -> Array:
        logits = self.network.apply({"params": unflatten_dict(weights, sep=".")}, inputs)
        return functional.cross_entropy(logits, targets)

    def state(self) -> common.Arrays:
        """Weights and slots, float32, by the names and in the layout of gpt.WEIGHTS."""
        slots = {f"{slot}/{name}": array for slot in gpt.SLOTS for name, array in self.slots[slot].items()}
        return {name: np.array(array) for name, array in (self.weights | slots).items()}

    def load_state(self, state: common.Arrays, step: int) -> None:
        """Takes over what state() returned after so many steps, in any framework."""
        self.weights = {name: jnp.asarray(state[name]) for name in gpt.WEIGHTS}
        slots = {slot: {name: jnp.asarray(state[f"{slot}/{name}"]) for name in gpt.WEIGHTS} for slot in gpt.SLOTS}
        self.slots = {"count": jnp.asarray(step, jnp.int32), **slots}


if __name__ == "__main__":
    common.main("jax", gpt, Trainer)
