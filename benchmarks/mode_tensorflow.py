"""Keras networks whose steps `benchmarks.mode` times."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

import repro.portable.tensorflow as portable
from benchmarks import mode

keras = tf.keras
layers = keras.layers
RANDOM = np.random.default_rng(0)
Task = tuple[Any, np.ndarray, np.ndarray, Any]
"""A network, inputs, labels, and an optimizer."""


def transformer(x: Any, depth: int, width: int, heads: int, causal: bool) -> Any:
    for _ in range(depth):
        y = layers.LayerNormalization()(x)
        x = x + layers.MultiHeadAttention(heads, width // heads)(y, y, use_causal_mask=causal)
        y = layers.Dense(4 * width, activation="gelu")(layers.LayerNormalization()(x))
        x = x + layers.Dense(width)(y)
    return layers.LayerNormalization()(x)


def gpt() -> Task:
    """GPT-2 of four layers."""
    given = keras.Input((128,), dtype="int32")
    x = layers.Embedding(1024, 256)(given) + layers.Embedding(128, 256)(keras.ops.arange(128))
    network = keras.Model(given, layers.Dense(1024)(transformer(x, 4, 256, 4, causal=True)))
    tokens = RANDOM.integers(0, 1024, (8, 128))
    return network, tokens, tokens, "adamw"


def resnet() -> Task:
    """K. He et al., Deep residual learning for image recognition, 2016."""

    def conv(x: Any, channels: int, size: int, stride: int = 1) -> Any:
        x = layers.Conv2D(channels, size, stride, padding="same", use_bias=False)(x)
        return layers.BatchNormalization()(x)

    given = keras.Input((64, 64, 3))
    x = layers.MaxPooling2D(3, 2, padding="same")(layers.ReLU()(conv(given, 64, 7, 2)))
    for stage, channels in enumerate((64, 128, 256, 512)):
        for number in range(2):
            stride = 2 if stage and not number else 1
            y = conv(layers.ReLU()(conv(x, channels, 3, stride)), channels, 3)
            x = layers.ReLU()(y + (x if x.shape == y.shape else conv(x, channels, 1, stride)))
    network = keras.Model(given, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))
    images = RANDOM.standard_normal((32, 64, 64, 3), np.float32)
    return network, images, RANDOM.integers(0, 10, 32), keras.optimizers.SGD(0.01, momentum=0.9)


def vit() -> Task:
    """ViT-Tiny: 12 layers of 192, for images of 224 x 224."""
    given = keras.Input((224, 224, 3))
    x = layers.Reshape((196, 192))(layers.Conv2D(192, 16, 16)(given))
    x = transformer(x + layers.Embedding(196, 192)(keras.ops.arange(196)), 12, 192, 3, causal=False)
    network = keras.Model(given, layers.Dense(10)(layers.GlobalAveragePooling1D()(x)))
    return network, RANDOM.standard_normal((8, 224, 224, 3), np.float32), RANDOM.integers(0, 10, 8), "adamw"


def lstm() -> Task:
    network = keras.Sequential([keras.Input((32, 32)), layers.LSTM(64), layers.Dense(10)])
    return network, RANDOM.standard_normal((16, 32, 32), np.float32), RANDOM.integers(0, 10, 16), "adam"


def lenet() -> Task:
    """The reference trainers' network."""
    parts: list[Any] = [keras.Input((28, 28, 1))]
    for channels in (10, 20):
        parts += [layers.Conv2D(channels, 5), layers.MaxPooling2D(), layers.ReLU()]
    network = keras.Sequential([*parts, layers.Flatten(), layers.Dense(50, "relu"), layers.Dense(10)])
    images = RANDOM.standard_normal((64, 28, 28, 1), np.float32)
    return network, images, RANDOM.integers(0, 10, 64), keras.optimizers.SGD(0.01, momentum=0.9)


def small() -> Task:
    inner = [layers.Dense(64, "relu") for _ in range(2)]
    network = keras.Sequential([keras.Input((64,)), *inner, layers.Dense(10)])
    return network, RANDOM.standard_normal((32, 64), np.float32), RANDOM.integers(0, 10, 32), "adamw"


def training(make: Callable[[], Task]) -> mode.Step:
    """A step of a new network."""
    keras.utils.set_random_seed(0)
    network, x, y, optimizer = make()
    network.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return lambda: network.train_on_batch(x, y)


NETWORKS: dict[str, Callable[[], mode.Step]] = {
    "ResNet-18": partial(training, resnet),
    "GPT-2": partial(training, gpt),
    "ViT-Tiny": partial(training, vit),
    "LeNet": partial(training, lenet),
    "LSTM": partial(training, lstm),
    "small layers": partial(training, small),
}


if __name__ == "__main__":
    mode.measure(NETWORKS, portable.enable)
