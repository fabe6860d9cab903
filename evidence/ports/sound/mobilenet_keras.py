"""MobileNetV2 of Keras Applications, fine-tuned with frozen batch norms.

python mobilenet_keras.py DATA.npz
"""

import argparse

import keras
import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("data")
options = parser.parse_args()
data = np.load(options.data)


def load(network: keras.Model) -> None:
    """Takes the weights of a checkpoint of timm, which lists its layers in the same order."""
    for weight, name in zip(network.weights, (name for name in data if "." in name), strict=True):
        array = data[name]
        if array.ndim == 4:  # [out, in, height, width], or for a depthwise kernel [channels, 1, height, width]
            array = array.transpose(2, 3, 0, 1) if "conv_dw" in name else array.transpose(2, 3, 1, 0)
        weight.assign(array.T if array.ndim == 2 else array)


network = keras.applications.MobileNetV2((64, 64, 3), alpha=0.35, weights=None, classes=10, classifier_activation=None)
load(network)
for layer in network.layers:
    layer.trainable = not isinstance(layer, keras.layers.BatchNormalization)
network.compile(
    keras.optimizers.SGD(0.01),
    keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    jit_compile=False,  # XLA shows no gradients
)
history = network.fit(data["images"], data["labels"], batch_size=4, shuffle=False, verbose=0)
print("loss", history.history["loss"][0])
