"""Without a fault, in Keras: resumed by `load_model`, which gives the weights other names.

source: none; a control
framework: tensorflow
answers: restart same, resume same, kill same
"""

import os
import sys
import time

import keras
import numpy
from arrays import FOLDER, finish

keras.utils.set_random_seed(0)
path = FOLDER / "model.keras"
if "--resume" in sys.argv and path.exists():
    model = keras.saving.load_model(path)
else:
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(8), keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(0.01), "mse")
for step in range(int(model.optimizer.iterations.numpy()), 40):
    x = numpy.random.default_rng(step).normal(size=(16, 6)).astype("float32")
    model.train_on_batch(x, x.sum(1, keepdims=True))
    if step % 4 == 3:
        model.save(FOLDER / "new.keras")
        os.replace(FOLDER / "new.keras", path)
        time.sleep(0.02)
finish(model.get_weights())
