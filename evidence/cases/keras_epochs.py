r"""A resumed run does not know its epoch: `fit` trains all of them again.

source: keras-team/keras#19179
framework: tensorflow
answers: restart same, kill differs
cause: ends after step|all epochs|steps? more|longer|batch.*(that|those) of steps? \d+
"""

import keras
import numpy
from arrays import finish, restored, save

EPOCHS = 12


class Checkpoint(keras.callbacks.Callback):
    def on_epoch_end(self, epoch: int, logs: object = None) -> None:
        weights, state = self.model.get_weights(), [each.numpy() for each in self.model.optimizer.variables]
        save(weights=weights, optimizer=state)


keras.utils.set_random_seed(0)
examples = numpy.random.default_rng(0).normal(size=(32, 8)).astype("float32")
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4)])
model.compile(keras.optimizers.Adam(0.01), "mse")
if kept := restored():
    model.set_weights(kept["weights"])
    model.optimizer.build(model.trainable_variables)
    for variable, value in zip(model.optimizer.variables, kept["optimizer"], strict=True):
        variable.assign(value)
model.fit(  # the fault: without initial_epoch
    examples, examples[:, :4], batch_size=16, epochs=EPOCHS, shuffle=False, verbose=0, callbacks=[Checkpoint()]
)
finish(model.get_weights())
