"""Networks of Keras on JAX, trained by `fit`."""

import os
from collections.abc import Callable, Sequence

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np
from keras import layers

from evidence.coverage.jax_training import integers, normal
from evidence.coverage.registry import program

Weights = dict[str, np.ndarray]


def fitted(given: tuple[int, ...], parts: Sequence[layers.Layer], optimizer: str) -> Weights:
    """What five steps make of a network that classifies inputs of a shape in ten classes."""
    model = keras.Sequential([keras.Input(given), *parts, layers.Dense(10, dtype="float32")])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, metrics=["accuracy"])
    model.fit(normal(40, *given), integers(10, 40), batch_size=8, verbose=0)
    state = [*model.variables, *model.optimizer.variables]
    return {str(number): np.asarray(variable.numpy()) for number, variable in enumerate(state)}


def keras_on_jax(name: str) -> Callable[[Callable[[], Weights]], Callable[[], Weights]]:
    """Registers a program that begins with Keras' generators and names of a fresh process."""

    def register(function: Callable[[], Weights]) -> Callable[[], Weights]:
        @program("keras-jax", name)
        def seeded() -> Weights:
            keras.backend.clear_session()
            keras.utils.set_random_seed(0)
            return function()

        return function

    return register


@keras_on_jax("fit, convolutions, batch norm")
def convolutions() -> Weights:
    parts = [layers.Conv2D(8, 3, activation="relu"), layers.BatchNormalization(), layers.MaxPooling2D()]
    parts += [layers.SeparableConv2D(16, 3, activation="gelu"), layers.Dropout(0.2), layers.GlobalAveragePooling2D()]
    return fitted((16, 16, 3), parts, "adam")


@keras_on_jax("fit, lstm and gru")
def recurrent() -> Weights:
    parts = [layers.Bidirectional(layers.LSTM(8, return_sequences=True)), layers.GRU(8, dropout=0.1)]
    return fitted((12, 6), parts, "nadam")


@keras_on_jax("fit, transformer")
def transformer() -> Weights:
    given = keras.Input((12, 16))
    x = layers.LayerNormalization()(given)
    x = given + layers.MultiHeadAttention(2, 8, dropout=0.1)(x, x)
    block = keras.Model(given, layers.Dense(16, activation="gelu")(layers.LayerNormalization()(x)))
    return fitted((12, 16), [block, layers.GlobalMaxPooling1D()], "adamw")


@keras_on_jax("fit, mixed precision, bfloat16")
def mixed_precision() -> Weights:
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        return fitted((8, 8, 3), [layers.Conv2D(8, 3, activation="silu"), layers.Flatten()], "lion")
    finally:
        keras.config.set_dtype_policy("float32")
