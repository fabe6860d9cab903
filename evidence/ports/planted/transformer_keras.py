"""A language model of two blocks with rotary embeddings, in Keras.

python transformer_keras.py DATA.npz [--fault FAULT]
"""

import argparse

import keras
import numpy as np
from keras import layers, ops

parser = argparse.ArgumentParser()
parser.add_argument("data")
parser.add_argument("--fault", choices=("masked_mean", "norm_place"))
options = parser.parse_args()
data = np.load(options.data)
ANGLES = (np.arange(16)[:, None, None] * 10000 ** (-np.arange(4) / 4)).astype(np.float32)


def rotate(x):
    """Turns each query or key [batch, position, head, 8] by its position: numbers 0 and 4, 1 and 5, ... are a pair."""
    first, second = ops.split(x, 2, -1)
    return ops.concatenate(
        [first * np.cos(ANGLES) - second * np.sin(ANGLES), second * np.cos(ANGLES) + first * np.sin(ANGLES)], -1
    )


class Attention(layers.Layer):
    def __init__(self, **settings) -> None:
        super().__init__(**settings)
        self.query, self.key, self.value = (
            layers.EinsumDense("bpi,ihd->bphd", (16, 4, 8), name=name) for name in ("query", "key", "value")
        )
        self.out = layers.EinsumDense("bphd,hdo->bpo", (16, 32), name="out")

    def call(self, x):
        q, k, v = rotate(self.query(x)), rotate(self.key(x)), self.value(x)
        scores = ops.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(8).astype(np.float32)
        scores = ops.where(np.tri(16, dtype=bool), scores, -np.inf)
        return self.out(ops.einsum("bhqk,bkhd->bqhd", ops.softmax(scores), v))


class MLP(layers.Layer):
    def __init__(self, **settings) -> None:
        super().__init__(**settings)
        self.fc1, self.fc2 = layers.Dense(128, activation="gelu", name="fc1"), layers.Dense(32, name="fc2")

    def call(self, x):
        return self.fc2(self.fc1(x))


class Block(layers.Layer):
    def __init__(self, **settings) -> None:
        super().__init__(**settings)
        self.norm1, self.attention = layers.LayerNormalization(epsilon=1e-3, name="norm1"), Attention(name="attention")
        self.norm2, self.mlp = layers.LayerNormalization(epsilon=1e-3, name="norm2"), MLP(name="mlp")

    def call(self, x):
        if options.fault == "norm_place":  # after the sum, as in the first transformer
            x = self.norm1(x + self.attention(x))
            return self.norm2(x + self.mlp(x))
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


def load(network: keras.Model) -> None:
    """Takes the weights of a PyTorch checkpoint."""
    network.get_layer("embedding").set_weights([data["embedding.weight"]])
    network.get_layer("norm").set_weights([data["norm.weight"], data["norm.bias"]])
    network.get_layer("head").set_weights([data["head.weight"].T])
    for number in range(2):
        name, block = f"blocks.{number}", network.get_layer(f"block{number}")
        for part, array in zip(
            ("query", "key", "value"), np.split(data[f"{name}.attention.qkv.weight"], 3), strict=True
        ):
            getattr(block.attention, part).set_weights([array.T.reshape(32, 4, 8)])
        block.attention.out.set_weights([data[f"{name}.attention.out.weight"].T.reshape(4, 8, 32)])
        parts = {"norm1": block.norm1, "norm2": block.norm2, "mlp.fc1": block.mlp.fc1, "mlp.fc2": block.mlp.fc2}
        for part, layer in parts.items():
            layer.set_weights([data[f"{name}.{part}.weight"].T, data[f"{name}.{part}.bias"]])


network = keras.Sequential(
    [
        keras.Input((16,), dtype="int32"),
        layers.Embedding(40, 32, name="embedding"),
        Block(name="block0"),
        Block(name="block1"),
        layers.LayerNormalization(epsilon=1e-3, name="norm"),
        layers.Dense(40, use_bias=False, name="head"),
    ]
)
load(network)
# The mean over what the mask leaves, or over everything.
reduction = "sum_over_batch_size" if options.fault == "masked_mean" else "mean_with_sample_weight"
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction=reduction)
network.compile(keras.optimizers.SGD(0.1, momentum=0.9), loss, jit_compile=False)  # XLA shows no gradients
tokens = data["tokens"]
history = network.fit(tokens[:, :-1], tokens[:, 1:], sample_weight=data["mask"], batch_size=4, shuffle=False, verbose=0)
print("loss", history.history["loss"][0])
