r"""The generator of `tf.data`'s shuffle is in no checkpoint: the epoch after a restore has the order of the first one.

source: tensorflow/tensorflow#48178, #58925
framework: tensorflow
answers: restart same, kill differs
cause: batch.*(that|those) of steps? \d+|(order|place in the data|generator|shuffle).*
"""

import keras
import numpy
import tensorflow
from arrays import finish, restored, save

keras.utils.set_random_seed(0)
examples = numpy.random.default_rng(0).normal(size=(64, 8)).astype("float32")
batches = tensorflow.data.Dataset.from_tensor_slices(examples).shuffle(64, seed=1).batch(8)
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4)])
optimizer = keras.optimizers.SGD(0.05, momentum=0.9)
optimizer.build(model.trainable_variables)
begin = 0
if kept := restored():
    model.set_weights(kept["weights"])
    for variable, value in zip(optimizer.variables, kept["optimizer"], strict=True):
        variable.assign(value)
    begin = int(kept["epoch"][0])
for epoch in range(begin, 8):
    for batch in batches:
        with tensorflow.GradientTape() as tape:
            loss = tensorflow.reduce_mean(model(batch) ** 2)
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
    save(weights=model.get_weights(), optimizer=[each.numpy() for each in optimizer.variables], epoch=epoch + 1)
finish(model.get_weights())
