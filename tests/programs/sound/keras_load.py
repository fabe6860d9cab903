"""A sound training in Keras: `train_on_batch` with dropout and batch normalization, resumed by `load_model`.

The seed generator of the dropout is restored by hand, where it has been saved beside the model.
"""

import os
import sys
import time

import keras
import numpy as np

keras.utils.set_random_seed(0)
random = np.random.default_rng(1)
inputs, labels = random.normal(size=(12, 16, 8)).astype("float32"), random.integers(0, 3, (12, 16))
path, done = os.path.join(sys.argv[1], "model.keras"), 0
if "--resume" in sys.argv:
    model = keras.models.load_model(path)
    kept = np.load(f"{path}.npz")
    model.layers[-2].seed_generator.state.assign(kept["seeds"])
    done = int(kept["step"])
else:
    model = keras.Sequential(
        [
            keras.Input((8,)),
            keras.layers.Dense(16),
            keras.layers.BatchNormalization(),
            keras.layers.ReLU(),
            keras.layers.Dropout(0.2),
            keras.layers.Dense(3),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), loss)
for step in range(done, 12):
    model.train_on_batch(inputs[step], labels[step])
    model.save(f"{sys.argv[1]}/new.keras")
    seeds = np.asarray(model.layers[-2].seed_generator.state)
    np.savez(f"{sys.argv[1]}/new.npz", seeds=seeds, step=step + 1)
    os.replace(f"{sys.argv[1]}/new.npz", f"{path}.npz")
    time.sleep(float(os.environ.get("PAUSE", "0.05")))
    os.replace(f"{sys.argv[1]}/new.keras", path)
print("trained")
