"""A GPT in TensorFlow, in portable numerics: the network, one training step, and a trainer.

    python examples/gpt_tensorflow.py --steps 20

The counterparts are gpt_pytorch.py and gpt_jax.py: the same functions in the same order, and the
same fingerprint.
"""

import common
import gpt
import keras
import numpy as np
import tensorflow as tf

from repro.portable.backends.checks import tensorflow as checks
from repro.portable.backends.tensorflow import Backend
from repro.portable.definitions.ranks import SINGLE_PROCESS
from repro.portable.library.tensorflow import functional, layers, optim
from repro.trainers.loop.config import Params
from repro.trainers.loop.ranks import RankInfo
from repro.trainers.native.tensorflow.ranks import join


class GPT(keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = layers.Embedding(*gpt.WEIGHTS["tokens.embedding"])
        self.blocks = [Block() for _ in range(gpt.LAYERS)]
        self.norm = layers.LayerNormalization(epsilon=gpt.EPSILON)

    def call(self, tokens: tf.Tensor) -> tf.Tensor:
        """Tokens, int [B, T] -> logits of the ones that follow, float32 [B, T, characters]."""
        x = self.tokens(tokens)
        for block in self.blocks:
            x = block(x)
        return functional.linear(self.norm(x), tf.transpose(self.tokens.embeddings))


class Block(keras.layers.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.norm1 = layers.LayerNormalization(epsilon=gpt.EPSILON)
        self.qkv = layers.Dense(3 * gpt.WIDTH)
        self.out = layers.Dense(gpt.WIDTH)
        self.norm2 = layers.LayerNormalization(epsilon=gpt.EPSILON)
        self.up = layers.Dense(4 * gpt.WIDTH)
        self.down = layers.Dense(gpt.WIDTH)

    def call(self, x: tf.Tensor) -> tf.Tensor:
        """[B, T, C] -> [B, T, C]."""
        x = functional.add(x, self.out(attend(self.qkv(self.norm1(x)))))
        return functional.add(x, self.down(functional.gelu(self.up(self.norm2(x)))))


def attend(qkv: tf.Tensor) -> tf.Tensor:
    """Queries, keys and values, [B, T, 3 C] -> [B, T, C]."""
    heads = tf.reshape(qkv, (*qkv.shape[:2], 3, gpt.HEADS, -1))
    q, k, v = tf.unstack(tf.transpose(heads, (2, 0, 3, 1, 4)))  # [B, heads, T, C / heads] each
    y = functional.scaled_dot_product_attention(functional.rotary(q), functional.rotary(k), v, is_causal=True)
    return tf.reshape(tf.transpose(y, (0, 2, 1, 3)), (*qkv.shape[:2], -1))


class Trainer:
    """Trains the network."""

    def __init__(self, params: Params, mode: common.Mode, rank_info: RankInfo | None) -> None:
        tf.config.threading.set_intra_op_parallelism_threads(params.threads)
        tf.config.threading.set_inter_op_parallelism_threads(params.threads)
        tf.config.run_functions_eagerly(mode == "eager")
        if params.device == "cpu":
            tf.config.set_visible_devices([], "GPU")
        self.ranks = join(rank_info, params)
        checks.self_check(params.engine)
        self.network = GPT()
        self.network(tf.zeros((1, gpt.CONTEXT), tf.int32))  # makes the weights
        self.weights = dict(zip(gpt.WEIGHTS, self.network.trainable_weights, strict=True))
        self.optimizer = optim.AdamW(beta_1=gpt.BETAS[0], beta_2=gpt.BETAS[1], epsilon=1e-8, weight_decay=gpt.DECAY)
        self.optimizer.build(list(self.weights.values()))
        # XLA joins the many small operations of a step, but knows no exchange between ranks.
        self.compiled = tf.function(self._step, jit_compile=self.ranks.size == 1)

    def step(self, rate: float, inputs: np.ndarray, targets: np.ndarray) -> float:
        """Trains on a batch, int32 [B, T] both, and returns its loss."""
        Backend.ranks = self.ranks
        self.optimizer.learning_rate.assign(rate)
        return float(self.compiled(tf.constant(inputs), tf.constant(targets)))

    def _step(self, inputs: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = self._loss(inputs, targets)
        gradients = tape.gradient(loss, {name: weight.value for name, weight in self.weights.items()})
        gradients, _ = functional.clip_by_global_norm(gradients, gpt.LIMIT)
        self.optimizer.apply(list(gradients.values()))
        return loss

    def evaluate(self, inputs: np.ndarray, targets: np.ndarray) -> float:
        """The mean loss of these."""
        Backend.ranks = SINGLE_PROCESS
        return float(tf.function(self._loss, jit_compile=True)(tf.constant(inputs), tf.constant(targets)))

    def _loss(self, inputs: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
        return functional.cross_entropy(self.network(inputs), targets)

    def state(self) -> common.Arrays:
        """Weights and slots, float32, by the names and in the layout of gpt.WEIGHTS."""
        return {name: variable.numpy() for name, variable in self._variables().items()}

    def load_state(self, state: common.Arrays, step: int) -> None:
        """Takes over what state() returned after so many steps, in any framework."""
        self.optimizer.iterations.assign(step)
        for name, variable in self._variables().items():
            variable.assign(state[name])

    def _variables(self) -> dict[str, keras.Variable]:
        slots = {
            f"{slot}/{name}": variable
            for slot, variables in zip(gpt.SLOTS, self.optimizer.slots(), strict=True)
            for name, variable in zip(self.weights, variables, strict=True)
        }
        return self.weights | slots


if __name__ == "__main__":
    common.main("tensorflow", gpt, Trainer)
