"""A small network by Keras' `fit`: a file for each epoch, with the model and its optimizer."""

import argparse
from pathlib import Path

import keras
import numpy as np

EPOCHS = 4


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--resume", action="store_true")
    options = parser.parse_args()
    keras.utils.set_random_seed(0)
    generator = np.random.default_rng(1)
    images, labels = generator.normal(size=(96, 12, 12, 1)).astype(np.float32), np.arange(96) % 10
    done = 0
    if options.resume:
        path = max(options.out.glob("epoch-*.keras"))
        model, done = keras.models.load_model(path), int(path.stem.removeprefix("epoch-"))
    else:
        model = keras.Sequential(
            [
                keras.Input((12, 12, 1)),
                keras.layers.Conv2D(8, 3, activation="relu"),
                keras.layers.Flatten(),
                keras.layers.Dense(10),
            ]
        )
        model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    callback = keras.callbacks.ModelCheckpoint(options.out / "epoch-{epoch}.keras")
    model.fit(
        images, labels, batch_size=16, epochs=EPOCHS, initial_epoch=done, shuffle=False, verbose=0, callbacks=[callback]
    )


if __name__ == "__main__":
    main()
