"""Ten optimizers of Keras, each in its own run, with the settings of optimizers_pytorch.py.

python optimizers_keras.py DATA.npz --optimizer NAME
"""

import argparse

import keras
import numpy as np
from keras import layers, optimizers

# Keras and PyTorch add epsilon at other places in adam, adamw, rmsprop, adagrad and nadam. Here it is too small to be seen.
OPTIMIZERS = {
    "sgd": lambda: optimizers.SGD(0.1),
    "momentum": lambda: optimizers.SGD(0.1, momentum=0.9),
    "nesterov": lambda: optimizers.SGD(0.1, momentum=0.9, nesterov=True),
    "adam": lambda: optimizers.Adam(0.01, epsilon=1e-12),
    "adamw": lambda: optimizers.AdamW(0.01, epsilon=1e-12, weight_decay=0.1),
    "rmsprop": lambda: optimizers.RMSprop(0.01, rho=0.9, epsilon=1e-20),
    "adagrad": lambda: optimizers.Adagrad(0.1, initial_accumulator_value=0.1, epsilon=1e-12),
    "adadelta": lambda: optimizers.Adadelta(1.0, rho=0.95, epsilon=1e-6),
    "adamax": lambda: optimizers.Adamax(0.01, epsilon=1e-12),
    "nadam": lambda: optimizers.Nadam(0.01, epsilon=1e-12),
}
parser = argparse.ArgumentParser()
parser.add_argument("data")
parser.add_argument("--optimizer", choices=OPTIMIZERS, required=True)
options = parser.parse_args()
data = np.load(options.data)

network = keras.Sequential(
    [keras.Input((32,)), layers.Dense(64, activation="tanh", name="dense1"), layers.Dense(10, name="dense3")]
)
for name in ("dense1", "dense3"):
    network.get_layer(name).set_weights([data[f"{name}.weight"].T, data[f"{name}.bias"]])
network.compile(
    OPTIMIZERS[options.optimizer](),
    keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    jit_compile=False,  # XLA shows no gradients
)
history = network.fit(data["rows"], data["labels"], batch_size=16, shuffle=False, verbose=0)
print("loss", history.history["loss"][0])
