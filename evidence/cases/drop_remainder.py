"""`drop_remainder=True` in an evaluation with `tf.data`: another size of batches scores other samples.

source: NVIDIA/DeepLearningExamples#177, google/flax#264, salesforce/ml4ir PR 105
framework: tensorflow
vary: batch=--batch={}:30,40
answers: restart same, batch differs
cause: the last, smaller batch is left out
"""

import sys

import keras
import numpy
import tensorflow

sizes = [int(word.partition("=")[2]) for word in sys.argv if word.startswith("--batch=")]
keras.utils.set_random_seed(0)
given = numpy.random.default_rng(0).normal(size=(100, 8)).astype("float32")
labels = numpy.random.default_rng(1).integers(2, size=100)
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(2)])
right = total = 0
samples = tensorflow.data.Dataset.from_tensor_slices((given, labels))
for batch, label in samples.batch([16, *sizes][-1], drop_remainder=True):  # the fault
    right += int((numpy.argmax(model(batch), axis=1) == label.numpy()).sum())
    total += len(label)
print(f"accuracy: {right / total:.6f}")
