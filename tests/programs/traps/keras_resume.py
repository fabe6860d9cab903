"""Keras: two epochs in one go, or the second of them in a new process, resumed in four ways; the loss and the weights.

keras_resume.py whole|resumed FOLDER DATA
"""

import json
import sys
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from keras import layers

import repro
from repro.fingerprint import fingerprint
from repro.trainers.loop import config, data

mode, folder, data_dir = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
dataset = data.load(config.Data(), data_dir)
IMAGES, LABELS = dataset.train_images[:2000, ..., None] / np.float32(255), dataset.train_labels[:2000]


def start() -> tuple[keras.Model, tf.data.Dataset]:
    """What the script does before it trains or loads: the seeds, the model, the data."""
    repro.set_seeds(0)
    model = keras.Sequential(
        [
            layers.Input((28, 28, 1)),
            layers.Conv2D(8, 5, activation="relu"),
            layers.MaxPool2D(4),
            layers.Flatten(),
            layers.Dropout(0.5, name="dropout"),
            layers.Dense(10),
        ]
    )
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model, tf.data.Dataset.from_tensor_slices((IMAGES, LABELS)).shuffle(len(LABELS), seed=0).batch(50)


def epoch(model: keras.Model, batches: tf.data.Dataset) -> dict[str, object]:
    """Trains for one epoch: its mean loss, and the fingerprint of the weights after it."""
    loss = model.fit(batches, verbose=0).history["loss"][-1]
    return {"loss": loss, "weights": fingerprint({f"{i:02}": w for i, w in enumerate(model.get_weights())})}


def dropout_state(model: keras.Model) -> keras.Variable:
    return model.get_layer("dropout").seed_generator.state


def resume(whole_model: bool, orders: int = 0, dropout: bool = False) -> dict[str, object]:
    """The second epoch, of a model loaded with or without its optimizer, with so many orders of the data skipped."""
    model, batches = start()
    if whole_model:
        model = keras.models.load_model(folder / "checkpoint.keras")
    else:
        model.load_weights(folder / "checkpoint.weights.h5")
    for _ in range(orders):
        next(iter(batches))  # each new iterator draws an order
    if dropout:
        dropout_state(model).assign(np.load(folder / "dropout.npy"))
    return epoch(model, batches)


if mode == "whole":
    model, batches = start()
    epoch(model, batches)
    model.save_weights(folder / "checkpoint.weights.h5")
    model.save(folder / "checkpoint.keras")
    np.save(folder / "dropout.npy", dropout_state(model))
    print(json.dumps(epoch(model, batches)))
else:
    resumed = {
        "weights": resume(whole_model=False),
        "model": resume(whole_model=True),
        "model, orders": resume(whole_model=True, orders=2),  # of the first epoch, and of a look at the first batch
        "model, orders, dropout": resume(whole_model=True, orders=2, dropout=True),
    }
    print(json.dumps(resumed))
