"""A classifier of images, trained by Keras: python keras_fit.py FOLDER EPOCHS."""

import os
import sys
from pathlib import Path

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np
from safetensors.torch import save_file
from torch import from_numpy


def main() -> None:
    folder, epochs = Path(sys.argv[1]), int(sys.argv[2])
    folder.mkdir(exist_ok=True)
    keras.utils.set_random_seed(1)
    saved = folder / "model.keras"
    if saved.exists():
        model = keras.models.load_model(saved)
    else:
        model = keras.Sequential(
            [
                keras.Input((8, 8, 1)),
                keras.layers.Conv2D(4, 3, activation="relu"),
                keras.layers.BatchNormalization(),
                keras.layers.MaxPooling2D(),
                keras.layers.Flatten(),
                keras.layers.Dense(8, activation="gelu"),
                keras.layers.LayerNormalization(),
                keras.layers.Dense(3, activation="softmax"),
            ]
        )
        model.compile(keras.optimizers.Adam(1e-2), "sparse_categorical_crossentropy", metrics=["accuracy"])
    generator = np.random.default_rng(0)
    x, y = generator.random((16, 8, 8, 1), np.float32), generator.integers(0, 3, 16)
    start = 1 if saved.exists() else 0
    model.fit(x, y, batch_size=4, epochs=epochs, initial_epoch=start, shuffle=False, validation_data=(x, y), verbose=0)
    model.save(saved)
    weights = {str(index): from_numpy(np.array(weight)) for index, weight in enumerate(model.get_weights())}
    save_file(weights, folder / "weights.safetensors")


main()
