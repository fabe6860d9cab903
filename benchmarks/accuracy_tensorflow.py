"""Small networks trained by portable numerics and by TensorFlow's float32, five seeds each.

    .venv/tensorflow/bin/python -m benchmarks.accuracy_tensorflow /usr/share/datasets/fashion-mnist [NETWORK ...]

prints a row for each network: what it reaches on data that it was not trained on, mean and standard deviation over the
seeds. Both see the same batches, and draw their first weights from the same seeds.
"""

import math
from collections.abc import Callable

import keras
import numpy as np

from benchmarks import accuracy
from benchmarks.mode_tensorflow import transformer
from repro.portable.modes import tensorflow as portable


def convnet() -> keras.Model:
    """Three convolutions with BatchNorm."""
    layers = [keras.layers.Input((28, 28)), keras.layers.Reshape((28, 28, 1))]
    for channels in (16, 32, 64):
        layers.append(keras.layers.Conv2D(channels, 3, 2, "same", use_bias=False))
        layers += [keras.layers.BatchNormalization(momentum=0.9), keras.layers.ReLU()]
    return keras.Sequential([*layers, keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(10)])


def rows() -> keras.Model:
    """An LSTM that reads an image row by row."""
    return keras.Sequential([keras.layers.Input((28, 28)), keras.layers.LSTM(64), keras.layers.Dense(10)])


def gpt() -> keras.Model:
    """A transformer over characters."""
    tokens = keras.layers.Input((accuracy.CONTEXT,), dtype="int32")
    places = keras.layers.Embedding(accuracy.CONTEXT, 64)(keras.ops.arange(accuracy.CONTEXT))
    x = transformer(keras.layers.Embedding(128, 64)(tokens) + places, 2, 64, 4, causal=True)
    return keras.Model(tokens, keras.layers.Dense(128)(x))


NETWORKS: dict[str, tuple[str, Callable[[], keras.Model]]] = {
    "CNN": ("images", convnet),
    "LSTM": ("images", rows),
    "GPT": ("text", gpt),
}
"""Data and network."""


def train(name: str, seed: int, given: list[accuracy.Batch], tested: accuracy.Batch) -> float:
    """Percent of right classes, or bits for each character."""
    keras.utils.set_random_seed(seed)
    data, make = NETWORKS[name]
    network = make()
    optimizer = keras.optimizers.AdamW(keras.optimizers.schedules.CosineDecay(3e-3, accuracy.STEPS))
    network.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    x, y = (np.concatenate(each) for each in zip(*given, strict=True))
    network.fit(x, y, accuracy.BATCH, verbose=0, shuffle=False)
    reached = network.evaluate(*tested, verbose=0, return_dict=True)
    return 100 * reached["accuracy"] if data == "images" else reached["loss"] / math.log(2)


if __name__ == "__main__":
    accuracy.main("TensorFlow", {name: data for name, (data, _) in NETWORKS.items()}, train, portable.enable)
