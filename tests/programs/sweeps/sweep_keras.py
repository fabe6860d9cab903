"""Trainings with several learning rates, one after another; with `--leak generator` one seed is set for all."""

import argparse

import keras
import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--rates", type=float, nargs="+", required=True)
parser.add_argument("--leak", choices=["generator"])
options = parser.parse_args()

keras.utils.set_random_seed(0)
inputs = np.random.default_rng(0).normal(size=(64, 4)).astype("float32")
labels = (inputs.sum(1) > 0).astype("int32")
for rate in options.rates:
    if options.leak != "generator":
        keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.layers.Dense(8), keras.layers.Dropout(0.1), keras.layers.Dense(2)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(rate, momentum=0.9), loss, jit_compile=False)
    model.fit(inputs, labels, batch_size=16, epochs=2, verbose=0)
