"""A residual network in JAX, in portable numerics: the network, one training step, and a trainer.

    python examples/resnet_jax.py --steps 20

The counterparts are resnet_pytorch.py and resnet_tensorflow.py: the same functions in the same order, and the same
fingerprint.
"""

from typing import Any

import common
import jax
import numpy as np
import resnet
from flax import linen as nn
from flax.traverse_util import flatten_dict, unflatten_dict
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


class ResNet(nn.Module):
    @nn.compact
    def __call__(self, x: Array, training: bool) -> Array:
        """Images float32 [B, 28, 28, 1] -> logits [B, 10]."""
        x = functional.relu(norm("norm", training)(conv("conv", resnet.CHANNELS[0], 3)(x)))
        for stage, (channels, stride) in enumerate(zip(resnet.CHANNELS, resnet.STRIDES, strict=True)):
            x = Block(channels, stride, name=f"block{stage}")(x, training)
        return layers.Dense(resnet.CLASSES, name="dense")(functional.global_avg_pool2d(x))


class Block(nn.Module):
    channels: int
    stride: int

    @nn.compact
    def __call__(self, x: Array, training: bool) -> Array:
        """[B, H, W, inputs] -> [B, H / stride, W / stride, channels]."""
        y = conv("conv1", self.channels, 3, self.stride)(x)
        y = functional.relu(norm("norm1", training)(y))
        y = norm("norm2", training)(conv("conv2", self.channels, 3)(y))
        if self.stride > 1:
            x = norm("norm3", training)(conv("conv3", self.channels, 1, self.stride)(x))
        return functional.relu(functional.add(x, y))


def conv(name: str, channels: int, size: int, stride: int = 1) -> nn.Module:
    return layers.Conv(channels, (size, size), stride, padding=size // 2, use_bias=False, name=name)


def norm(name: str, training: bool) -> nn.Module:
    return layers.BatchNorm(not training, momentum=resnet.KEPT, epsilon=resnet.EPSILON, name=name)


class Trainer:
    """Trains the network."""

    def __init__(self, params: Params, mode: common.Mode, rank_info: RankInfo | None) -> None:
        eager = mode == "eager"
        if eager and rank_info:
            raise UsageError("--mode=eager: JAX shares a batch in compiled code only; leave it out, or --ranks")
        jax.config.update("jax_enable_x64", True)
        jax.config.update("jax_disable_jit", eager)
        self.ranks = join(rank_info, params)
        self.sharing = (
            SINGLE_PROCESS if eager else self.ranks.share(resnet.BATCH)[1]
        )  # ranks, or threads of this process
        checks.self_check(params.engine)
        self.network = ResNet()
        self.weights: dict[str, Array] = {}  # load_state() fills these three
        self.statistics: dict[str, Array] = {}
        self.slots: dict[str, Any] = {}
        self.optimizer = optim.sgd(resnet.PEAK, resnet.MOMENTUM, nesterov=True, weight_decay=resnet.DECAY)
        self.compiled = jax.jit(self._step, static_argnums=0)
        self.compiled_scores = jax.jit(self._scores)

    def step(self, rate: float, inputs: np.ndarray, targets: np.ndarray) -> float:
        """Trains on a batch, float32 [B, 28, 28, 1] and int32 [B], and returns its loss."""
        whole, divided = (self.weights, self.statistics, self.slots, rate), (inputs[None], targets[None])
        self.weights, self.statistics, self.slots, loss = run(self.sharing, self.compiled, whole, divided)
        return float(loss)

    def _step(self, ranks: SingleProcess, weights, statistics, slots, rate: Array, inputs: Array, targets: Array):
        Backend.ranks = ranks

        def find(weights):
            logits, changed = self._logits(weights, statistics, inputs[0], training=True)
            loss = functional.cross_entropy(logits, targets[0], resnet.SMOOTHING)
            return loss, flatten_dict(changed["batch_stats"], sep=".")

        (loss, statistics), gradients = jax.value_and_grad(find, has_aux=True)(weights)
        weights, slots = self.optimizer.update(weights, slots, gradients, rate)
        return weights, statistics, slots, loss

    def evaluate(self, inputs: np.ndarray, targets: np.ndarray) -> float:
        """The number of these images that are recognized."""
        Backend.ranks = SINGLE_PROCESS
        return float((self.compiled_scores(self.weights, self.statistics, inputs).argmax(1) == targets).sum())

    def _scores(self, weights, statistics, inputs: Array) -> Array:
        return self._logits(weights, statistics, inputs, training=False)[0]

    def _logits(self, weights, statistics, inputs: Array, training: bool):
        variables = {"params": unflatten_dict(weights, sep="."), "batch_stats": unflatten_dict(statistics, sep=".")}
        return self.network.apply(variables, inputs, training, mutable=["batch_stats"])

    def state(self) -> common.Arrays:
        """Weights, statistics and slots, float32, by the names and in the layout of resnet.WEIGHTS."""
        slots = {f"{slot}/{name}": array for slot in resnet.SLOTS for name, array in self.slots[slot].items()}
        return {name: np.array(array) for name, array in (self.weights | self.statistics | slots).items()}

    def load_state(self, state: common.Arrays, step: int) -> None:
        """Takes over what state() returned after so many steps, in any framework."""
        self.weights = {name: jnp.asarray(state[name]) for name in resnet.WEIGHTS}
        self.statistics = {name: jnp.asarray(state[name]) for name in resnet.STATISTICS}
        slots = {slot: {name: jnp.asarray(state[f"{slot}/{name}"]) for name in resnet.WEIGHTS} for slot in resnet.SLOTS}
        self.slots = {"count": jnp.asarray(step, jnp.int32), **slots}


if __name__ == "__main__":
    common.main("jax", resnet, Trainer)
