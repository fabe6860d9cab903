"""An LSTM that sorts series into classes, in Keras.

python lstm_keras.py DATA.npz [--fault FAULT]
"""

import argparse

import keras
import numpy as np
from keras import layers

parser = argparse.ArgumentParser()
parser.add_argument("data")
parser.add_argument("--fault", choices=("gates",))
options = parser.parse_args()
data = np.load(options.data)


def gates(array: np.ndarray) -> np.ndarray:
    """The gates of a PyTorch checkpoint, which are input, forget, cell, output, as in Keras."""
    first, second, third, fourth = np.split(array, 4)
    # The fault takes them for ONNX' order: input, output, forget, cell.
    return np.concatenate(
        [first, third, fourth, second] if options.fault == "gates" else [first, second, third, fourth]
    )


network = keras.Sequential(
    [keras.Input((10, 6)), layers.LSTM(12, use_cudnn=False, name="lstm"), layers.Dense(3, name="dense")]
)
network.get_layer("lstm").set_weights(
    [gates(data["lstm.weight_ih_l0"]).T, gates(data["lstm.weight_hh_l0"]).T, gates(data["lstm.bias_ih_l0"])]
)
network.get_layer("dense").set_weights([data["dense.weight"].T, data["dense.bias"]])
network.compile(
    keras.optimizers.SGD(0.1, momentum=0.9),
    keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    jit_compile=False,  # XLA shows no gradients
)
history = network.fit(data["series"], data["labels"], batch_size=8, shuffle=False, verbose=0)
print("loss", history.history["loss"][0])
