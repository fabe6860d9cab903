"""The format of the checkpoint has the weights alone; Adam starts at its step 0, without a message.

source: tensorflow/tensorflow#44670, #53064, #48947, keras-team/keras#13027
framework: tensorflow
answers: restart same, kill differs
cause: optimizer.*not restored|state of the optimizer
"""

import keras
import numpy
from arrays import finish, restored, save

EPOCHS = 12


class Checkpoint(keras.callbacks.Callback):
    def on_epoch_end(self, epoch: int, logs: object = None) -> None:
        save(weights=self.model.get_weights(), epoch=epoch + 1)  # the fault


keras.utils.set_random_seed(0)
examples = numpy.random.default_rng(0).normal(size=(32, 8)).astype("float32")
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(16, "relu"), keras.layers.Dense(4)])
model.compile(keras.optimizers.Adam(0.01), "mse")
begin = 0
if kept := restored():
    model.set_weights(kept["weights"])
    begin = int(kept["epoch"][0])
model.fit(
    examples,
    examples[:, :4],
    batch_size=16,
    epochs=EPOCHS,
    initial_epoch=begin,
    shuffle=False,
    verbose=0,
    callbacks=[Checkpoint()],
)
finish(model.get_weights())
