"""Fingerprints of Keras' models: those of their weights by their paths."""

import keras
import numpy as np

from repro.fingerprint import fingerprint, weights_fingerprint

model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2), keras.layers.BatchNormalization()])
arrays = {weight.path: np.asarray(weight) for weight in model.weights}
assert len(arrays) == 6
assert weights_fingerprint(model) == fingerprint(arrays)
print("the same")
