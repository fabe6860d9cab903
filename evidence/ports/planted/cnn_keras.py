"""A convolutional network with batch norm, in Keras.

python cnn_keras.py DATA.npz [--fault FAULT]
"""

import argparse

import keras
import numpy as np
from keras import layers

parser = argparse.ArgumentParser()
parser.add_argument("data")
parser.add_argument("--fault", choices=("momentum",))
options = parser.parse_args()
data = np.load(options.data)
# Keras' momentum is the share that stays, PyTorch's is the share that is new.
MOMENTUM = 0.1 if options.fault == "momentum" else 0.9

network = keras.Sequential(
    [
        keras.Input((12, 12, 3)),
        layers.Conv2D(8, 3, padding="same", use_bias=False, name="conv1"),
        layers.BatchNormalization(momentum=MOMENTUM, epsilon=1e-5, name="norm1"),
        layers.ReLU(),
        layers.AveragePooling2D(3, strides=1, padding="same", name="pool"),
        layers.ZeroPadding2D(1),  # padding="same" would pad below and to the right alone
        layers.Conv2D(16, 3, strides=2, use_bias=False, name="conv2"),
        layers.BatchNormalization(momentum=MOMENTUM, epsilon=1e-5, name="norm2"),
        layers.ReLU(),
        layers.Flatten(),
        layers.Dense(10, name="dense"),
    ]
)


def load() -> None:
    """Takes the weights of a PyTorch checkpoint."""
    for name in ("conv1", "conv2"):
        network.get_layer(name).kernel.assign(data[f"{name}.weight"].transpose(2, 3, 1, 0))
    for name in ("norm1", "norm2"):
        network.get_layer(name).gamma.assign(data[f"{name}.weight"])
        network.get_layer(name).beta.assign(data[f"{name}.bias"])
    # PyTorch flattens [channel, height, width], Keras [height, width, channel].
    kernel = data["dense.weight"].reshape(10, 16, 6, 6).transpose(2, 3, 1, 0)
    network.get_layer("dense").set_weights([kernel.reshape(-1, 10), data["dense.bias"]])


load()
images = ((data["images"] / 255 - 0.45) / 0.25).astype(np.float32)
network.compile(
    keras.optimizers.SGD(0.05, momentum=0.9),
    keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    jit_compile=False,  # XLA shows no gradients
)
history = network.fit(images, data["labels"], batch_size=8, shuffle=False, verbose=0)
print("loss", history.history["loss"][0])
