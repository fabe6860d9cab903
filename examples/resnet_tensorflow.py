"""A residual network in TensorFlow, in portable numerics: the network, one training step, and a trainer.

    python examples/resnet_tensorflow.py --steps 20

The counterparts are resnet_pytorch.py and resnet_jax.py: the same functions in the same order, and the
same fingerprint.
"""

import common
import keras
import numpy as np
import resnet
import tensorflow as tf

from repro.portable.backends.checks import tensorflow as checks
from repro.portable.backends.tensorflow import Backend
from repro.portable.definitions.ranks import SINGLE_PROCESS
from repro.portable.library.tensorflow import functional, layers, optim
from repro.trainers.loop.config import Params
from repro.trainers.loop.ranks import RankInfo
from repro.trainers.native.tensorflow.ranks import join


class ResNet(keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.conv = conv(resnet.CHANNELS[0], 3)
        self.norm = norm()
        self.blocks = [Block(*stage) for stage in zip(resnet.CHANNELS, resnet.STRIDES, strict=True)]
        self.dense = layers.Dense(resnet.CLASSES)

    def call(self, x: tf.Tensor, training: bool) -> tf.Tensor:
        """Images float32 [B, 28, 28, 1] -> logits [B, 10]."""
        x = functional.relu(self.norm(self.conv(x), training=training))
        for block in self.blocks:
            x = block(x, training=training)
        return self.dense(functional.global_avg_pool2d(x))


class Block(keras.layers.Layer):
    def __init__(self, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = conv(channels, 3, stride)
        self.norm1 = norm()
        self.conv2 = conv(channels, 3)
        self.norm2 = norm()
        self.stride = stride
        if stride > 1:
            self.conv3 = conv(channels, 1, stride)
            self.norm3 = norm()

    def call(self, x: tf.Tensor, training: bool) -> tf.Tensor:
        """[B, H, W, inputs] -> [B, H / stride, W / stride, channels]."""
        y = functional.relu(self.norm1(self.conv1(x), training=training))
        y = self.norm2(self.conv2(y), training=training)
        if self.stride > 1:
            x = self.norm3(self.conv3(x), training=training)
        return functional.relu(functional.add(x, y))


def conv(channels: int, size: int, stride: int = 1) -> keras.layers.Layer:
    # Keras's "same" would pad one side alone where the stride is 2.
    padding = keras.layers.ZeroPadding2D(size // 2)
    return keras.Sequential([padding, layers.Conv2D(channels, size, stride, use_bias=False)])


def norm() -> keras.layers.Layer:
    return layers.BatchNormalization(momentum=resnet.KEPT, epsilon=resnet.EPSILON)


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
        self.network = ResNet()
        self.network(tf.zeros((1, 28, 28, 1)), training=False)  # makes the weights
        self.weights = dict(zip(resnet.WEIGHTS, self.network.trainable_weights, strict=True))
        self.statistics = dict(zip(resnet.STATISTICS, self.network.non_trainable_weights, strict=True))
        self.optimizer = optim.SGD(momentum=resnet.MOMENTUM, nesterov=True, weight_decay=resnet.DECAY)
        self.optimizer.build(list(self.weights.values()))
        # XLA joins the many small operations of a step, but knows no exchange between ranks.
        self.compiled = tf.function(self._step, jit_compile=self.ranks.size == 1)
        self.compiled_scores = tf.function(self._scores, jit_compile=True)

    def step(self, rate: float, inputs: np.ndarray, targets: np.ndarray) -> float:
        """Trains on a batch, float32 [B, 28, 28, 1] and int32 [B], and returns its loss."""
        Backend.ranks = self.ranks
        self.optimizer.learning_rate.assign(rate)
        return float(self.compiled(tf.constant(inputs), tf.constant(targets)))

    def _step(self, inputs: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = functional.cross_entropy(self.network(inputs, training=True), targets, resnet.SMOOTHING)
        gradients = tape.gradient(loss, [weight.value for weight in self.weights.values()])
        self.optimizer.apply(gradients)
        return loss

    def evaluate(self, inputs: np.ndarray, targets: np.ndarray) -> float:
        """The number of these images that are recognized."""
        Backend.ranks = SINGLE_PROCESS
        return float((self.compiled_scores(tf.constant(inputs)).numpy().argmax(1) == targets).sum())

    def _scores(self, inputs: tf.Tensor) -> tf.Tensor:
        return self.network(inputs, training=False)

    def state(self) -> common.Arrays:
        """Weights, statistics and slots, float32, by the names and in the layout of resnet.WEIGHTS."""
        return {name: variable.numpy() for name, variable in self._variables().items()}

    def load_state(self, state: common.Arrays, step: int) -> None:
        """Takes over what state() returned after so many steps, in any framework."""
        self.optimizer.iterations.assign(step)
        for name, variable in self._variables().items():
            variable.assign(state[name])

    def _variables(self) -> dict[str, keras.Variable]:
        slots = {
            f"{slot}/{name}": variable
            for slot, variables in zip(resnet.SLOTS, self.optimizer.slots(), strict=True)
            for name, variable in zip(self.weights, variables, strict=True)
        }
        return self.weights | self.statistics | slots


if __name__ == "__main__":
    common.main("tensorflow", resnet, Trainer)
