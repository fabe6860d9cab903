"""A sound training in Keras: `fit` with batch normalization and a schedule, resumed by BackupAndRestore.

Without dropout: a backup does not have the state of the layers' seed generators.
"""

import os
import sys
import time

import keras
import numpy as np

keras.utils.set_random_seed(0)
random = np.random.default_rng(1)
inputs, labels = random.normal(size=(64, 8)).astype("float32"), random.integers(0, 3, 64)
model = keras.Sequential(
    [
        keras.Input((8,)),
        keras.layers.Dense(16),
        keras.layers.BatchNormalization(),
        keras.layers.ReLU(),
        keras.layers.Dense(3),
    ]
)
rate = keras.optimizers.schedules.ExponentialDecay(0.01, 10, 0.9)
model.compile(
    keras.optimizers.Adam(rate), keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"]
)
backup = keras.callbacks.BackupAndRestore(f"{sys.argv[1]}/backup", delete_checkpoint=False)
pause = keras.callbacks.LambdaCallback(
    on_train_batch_end=lambda batch, logs: time.sleep(float(os.environ.get("PAUSE", "0.05")))
)
model.fit(inputs, labels, batch_size=16, epochs=6, shuffle=False, verbose=0, callbacks=[backup, pause])
print("trained")
