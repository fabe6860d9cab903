"""A Keras script as many are written: a convnet, Adadelta, batches of 128. Prints the weights' fingerprint.

unseeded.py DATA none|seeds|strict
"""

import sys
from pathlib import Path

import keras
import numpy as np
from keras import layers

import repro
from repro import config, data
from repro.fingerprint import fingerprint

STEPS = 5

dataset = data.load(config.Data(), Path(sys.argv[1]))
count = STEPS * 128
images, labels = dataset.train_images[:count, ..., None] / np.float32(255), dataset.train_labels[:count]

if sys.argv[2] != "none":
    repro.set_seeds(0, deterministic=sys.argv[2] == "strict")
model = keras.Sequential([
    layers.Input((28, 28, 1)),
    layers.Conv2D(32, 3, activation="relu"), layers.Conv2D(64, 3, activation="relu"), layers.MaxPool2D(),
    layers.Dropout(0.25), layers.Flatten(),
    layers.Dense(128, activation="relu"), layers.Dropout(0.5), layers.Dense(10, activation="softmax"),
])  # fmt: skip
model.compile("adadelta", "sparse_categorical_crossentropy")
loss = model.fit(images, labels, batch_size=128, verbose=0).history["loss"][-1]
print(loss, fingerprint({f"{i:02}": w for i, w in enumerate(model.get_weights())}))
