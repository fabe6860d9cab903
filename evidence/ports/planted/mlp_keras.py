"""A multilayer perceptron with dropout and smoothed labels, in Keras.

python mlp_keras.py DATA.npz [--optimizer NAME] [--fault FAULT]
"""

import argparse

import keras
import numpy as np
from keras import layers, ops

parser = argparse.ArgumentParser()
parser.add_argument("data")
parser.add_argument("--optimizer", choices=("sgd", "adam", "clipped"), default="sgd")
parser.add_argument("--fault", choices=("adam_epsilon", "sum", "smoothing", "clip_layers"))
options = parser.parse_args()
data = np.load(options.data)


class Dropout(layers.Layer):
    """Drops what a mask names, so that every framework drops the same."""

    def call(self, x, keep):
        return x * keep / 0.75


class Adam(keras.optimizers.Adam):
    """Adds epsilon to the root of the corrected variance, as PyTorch and Optax do; Keras' own to that before."""

    def update_step(self, gradient, variable, learning_rate):
        epsilon, step = self.epsilon, ops.cast(self.iterations + 1, variable.dtype)
        self.epsilon = epsilon * ops.sqrt(1 - ops.power(self.beta_2, step))
        super().update_step(gradient, variable, learning_rate)
        self.epsilon = epsilon


def make_optimizer() -> keras.optimizers.Optimizer:
    if options.optimizer == "adam":
        kind = keras.optimizers.Adam if options.fault == "adam_epsilon" else Adam
        return kind(0.01, epsilon=1e-3)
    if options.optimizer == "clipped":
        clip = "clipnorm" if options.fault == "clip_layers" else "global_clipnorm"
        return keras.optimizers.SGD(0.1, momentum=0.9, **{clip: 0.5})
    return keras.optimizers.SGD(0.1, momentum=0.9)


def make_network() -> keras.Model:
    rows, keep = keras.Input((32,)), keras.Input((64,))
    x = Dropout(name="dropout")(layers.Dense(64, activation="relu", name="dense1")(rows), keep)
    x = layers.Dense(64, activation="relu", name="dense2")(x)
    network = keras.Model([rows, keep], layers.Dense(10, name="dense3")(x))
    for name in ("dense1", "dense2", "dense3"):  # the weights of a PyTorch checkpoint
        network.get_layer(name).set_weights([data[f"{name}.weight"].T, data[f"{name}.bias"]])
    return network


network = make_network()
loss = keras.losses.CategoricalCrossentropy(
    from_logits=True,
    label_smoothing=0.0 if options.fault == "smoothing" else 0.1,
    reduction="sum" if options.fault == "sum" else "sum_over_batch_size",
)
network.compile(make_optimizer(), loss, jit_compile=False)  # XLA shows no gradients
rows, keep, labels = (data[name][data["order"]] for name in ("rows", "keep", "labels"))
truth = np.eye(10, dtype=np.float32)[labels]
history = network.fit([rows, keep], truth, batch_size=16, shuffle=False, verbose=0)
print("loss", history.history["loss"][0])
