"""A convolution, an image of twice the size by interpolation, a convolution, in Keras.

python resize_keras.py DATA.npz
"""

import argparse

import keras
import numpy as np
from keras import layers

parser = argparse.ArgumentParser()
parser.add_argument("data")
options = parser.parse_args()
data = np.load(options.data)

network = keras.Sequential(
    [
        keras.Input((6, 6, 3)),
        layers.Conv2D(8, 3, padding="same", activation="relu", name="conv1"),
        layers.UpSampling2D(2, interpolation="bilinear", name="resize"),
        layers.Conv2D(2, 1, name="conv2"),
    ]
)
for name in ("conv1", "conv2"):  # the weights of a PyTorch checkpoint
    network.get_layer(name).set_weights([data[f"{name}.weight"].transpose(2, 3, 1, 0), data[f"{name}.bias"]])
network.compile(
    keras.optimizers.SGD(0.1, momentum=0.9), "mean_squared_error", jit_compile=False
)  # XLA shows no gradients
history = network.fit(data["images"], data["targets"], batch_size=4, shuffle=False, verbose=0)
print("loss", history.history["loss"][0])
