"""Without a fault, in Keras: weights, optimizer, the state of dropout and the epoch are restored.

source: none; a control
framework: tensorflow
answers: restart same, resume same, kill same
"""

import keras
import numpy
from arrays import finish, restored, save

EPOCHS = 12


class Checkpoint(keras.callbacks.Callback):
    def on_epoch_end(self, epoch: int, logs: object = None) -> None:
        variables = [each.numpy() for each in (*self.model.variables, *self.model.optimizer.variables)]
        save(variables=variables, epoch=epoch + 1)


keras.utils.set_random_seed(0)
examples = numpy.random.default_rng(0).normal(size=(32, 8)).astype("float32")
model = keras.Sequential([keras.Input((8,)), keras.layers.Dropout(0.2), keras.layers.Dense(4)])
model.compile(keras.optimizers.Adam(0.01), "mse")
model.optimizer.build(model.trainable_variables)
begin = 0
if kept := restored():
    for variable, value in zip((*model.variables, *model.optimizer.variables), kept["variables"], strict=True):
        variable.assign(value)
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
