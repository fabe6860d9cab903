"""An evaluation in Keras, which prints a progress bar; the callbacks' logs are its metrics."""

import keras
import numpy as np

keras.utils.set_random_seed(0)
draw = np.random.default_rng(0)
model = keras.Sequential([keras.Input((32,)), keras.layers.Dense(4)])
model.compile(loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
model.evaluate(draw.standard_normal((256, 32)).astype("float32"), draw.integers(0, 4, 256), batch_size=32)
