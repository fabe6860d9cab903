r"""Keras' EarlyStopping forgets its best value and how long it waits: a resumed run ends later.

source: keras-team/keras#9462, #14862
framework: tensorflow
answers: restart same, kill differs
cause: EarlyStopping\.(best|wait)|ends the training
"""

import time

import keras
import numpy
from arrays import FOLDER, PAUSE, finish

keras.utils.set_random_seed(0)
draw = numpy.random.default_rng(0)
inputs, targets = draw.normal(size=(64, 8)).astype("float32"), draw.normal(size=(64, 1)).astype("float32")
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(32, "relu"), keras.layers.Dense(1)])
model.compile(keras.optimizers.Adam(0.003), "mse", jit_compile=False)


class Pause(keras.callbacks.Callback):
    """Time after each epoch's backup, in which the case may be stopped."""

    def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
        time.sleep(PAUSE)


callbacks = [
    keras.callbacks.BackupAndRestore(FOLDER / "backup", delete_checkpoint=False),
    keras.callbacks.EarlyStopping("val_loss", patience=6),  # the fault: no checkpoint has its state
    Pause(),
]
split = (inputs[48:], targets[48:])
model.fit(inputs[:48], targets[:48], 16, 40, verbose=0, callbacks=callbacks, validation_data=split, shuffle=False)
finish(model.get_weights())
