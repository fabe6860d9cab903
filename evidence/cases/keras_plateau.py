"""Keras keeps no state of a callback: ReduceLROnPlateau counts anew after a resume.

source: keras-team/keras#14862, #9462
framework: tensorflow
answers: restart same, kill differs
cause: (learning[ _]rate|`?lr`?|schedule)
"""

import keras
import numpy
from arrays import finish, restored, save

EPOCHS = 20


class Checkpoint(keras.callbacks.Callback):
    def on_epoch_end(self, epoch: int, logs: object = None) -> None:
        weights, state = self.model.get_weights(), [each.numpy() for each in self.model.optimizer.variables]
        save(weights=weights, optimizer=state, epoch=epoch + 1)


keras.utils.set_random_seed(0)
examples = numpy.random.default_rng(0).normal(size=(32, 8)).astype("float32")
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4)])
model.compile(keras.optimizers.SGD(0.5), "mse")
begin = 0
if kept := restored():
    model.set_weights(kept["weights"])
    model.optimizer.build(model.trainable_variables)
    for variable, value in zip(model.optimizer.variables, kept["optimizer"], strict=True):
        variable.assign(value)
    begin = int(kept["epoch"][0])
plateau = keras.callbacks.ReduceLROnPlateau("loss", factor=0.5, patience=8, min_delta=100.0)
callbacks = [plateau, Checkpoint()]
model.fit(
    examples,
    examples[:, :4],
    batch_size=16,
    epochs=EPOCHS,
    initial_epoch=begin,
    shuffle=False,
    verbose=0,
    callbacks=callbacks,
)
finish(model.get_weights())
