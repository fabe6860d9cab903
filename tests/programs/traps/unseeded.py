"""Keras: a convnet, Adadelta, batches of 128, as in many a script: unseeded, seeded, and strict. unseeded.py DATA"""

import json
import sys
from pathlib import Path

import keras
import numpy as np
from keras import layers

import repro
from repro.fingerprint import fingerprint
from repro.trainers.loop import config, data

STEPS = 5

dataset = data.load(config.Data(), Path(sys.argv[1]))
images, labels = dataset.train_images[: STEPS * 128, ..., None] / np.float32(255), dataset.train_labels[: STEPS * 128]


def train() -> dict[str, object]:
    """Loss and weights after a few steps."""
    model = keras.Sequential(
        [
            layers.Input((28, 28, 1)),
            layers.Conv2D(32, 3, activation="relu"),
            layers.Conv2D(64, 3, activation="relu"),
            layers.MaxPool2D(),
            layers.Dropout(0.25),
            layers.Flatten(),
            layers.Dense(128, activation="relu"),
            layers.Dropout(0.5),
            layers.Dense(10, activation="softmax"),
        ]
    )
    model.compile("adadelta", "sparse_categorical_crossentropy")
    loss = model.fit(images, labels, batch_size=128, verbose=0).history["loss"][-1]
    return {"loss": loss, "weights": fingerprint({f"{i:02}": w for i, w in enumerate(model.get_weights())})}


results = {"unseeded": train()}
for name, deterministic in (("seeds", False), ("strict", True)):
    repro.set_seeds(0, deterministic)
    results[name] = train()
print(json.dumps(results))
