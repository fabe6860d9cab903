"""Keras' fit under the mode: a small network with most kinds of layers, and a recurrent one.

    python tensorflow_fit.py [--eager]

Prints JSON: the SHA-256 of the weights of each, and what was computed.
"""

import hashlib
import json
import sys

import keras
import numpy as np

from repro.portable.kernels.numpy import threads
from repro.portable.modes import tensorflow as portable

EAGER = "--eager" in sys.argv
layers = keras.layers


def images() -> keras.Model:
    """Images and their classes, in bfloat16 at one place."""
    return keras.Sequential(
        [
            layers.Conv2D(8, 3, padding="same", strides=2, use_bias=False),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.DepthwiseConv2D(3, dtype="mixed_bfloat16"),
            layers.MaxPooling2D(2),
            layers.Reshape((4, 8)),
            layers.LayerNormalization(),
            layers.Dense(8, activation="gelu"),
            layers.Dropout(0.2),
            layers.GlobalAveragePooling1D(),
            layers.Dense(5),
        ]
    )


def words() -> keras.Model:
    """Words and those that follow."""
    given = keras.Input((8,), dtype="int32")
    h = layers.Embedding(20, 8)(given)
    h = layers.LSTM(8, return_sequences=True)(h)
    h = h + layers.MultiHeadAttention(2, 4)(h, h, use_causal_mask=True)
    return keras.Model(given, layers.Dense(20)(h))


def trained(model: keras.Model, x: np.ndarray, y: np.ndarray, optimizer: keras.optimizers.Optimizer) -> str:
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    steps = {} if EAGER else {"steps_per_execution": 2}
    model.compile(optimizer, loss, metrics=["accuracy"], run_eagerly=EAGER, **steps)
    model.fit(x, y, batch_size=8, epochs=2, verbose=0)
    return hashlib.sha256(b"".join(np.asarray(each).tobytes() for each in model.get_weights())).hexdigest()


if __name__ == "__main__":
    portable.enable()
    keras.utils.set_random_seed(0)
    random = np.random.Generator(np.random.Philox(key=[8, 0]))
    pixels, classes = random.standard_normal((20, 12, 12, 3), np.float32), np.arange(20) % 5
    text = random.integers(0, 20, (20, 9))
    hashes = {
        "images": trained(images(), pixels, classes, keras.optimizers.SGD(0.1, momentum=0.9)),
        "words": trained(words(), text[:, :-1], text[:, 1:], keras.optimizers.AdamW(1e-2)),
    }
    print(json.dumps({"hashes": hashes, "operations": portable.counted()["operations"], "threads": threads.count()}))
