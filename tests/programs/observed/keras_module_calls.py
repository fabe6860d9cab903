"""Trainings with Keras on TensorFlow that say themselves what the layers take and give in their first step.

Arguments: scenarios. Each prints a line of JSON, made with copies of the model in float32 and in float64.
"""

import json
import sys

import keras
import numpy as np
import tensorflow as tf
from hashes import sha

STEPS, SIZE = 3, 16
X = np.random.RandomState(0).randn(STEPS * SIZE, 5, 4).astype("float32")
Y = X.sum((1, 2), keepdims=False)[:, None]


class Pair(keras.layers.Layer):
    """Gives a tuple, and takes an argument by its name."""

    def build(self, shape):
        self.shift = self.add_weight((shape[-1],), name="shift")

    def call(self, x, scale=1.0, training=None):
        return keras.ops.relu(
            x * scale * (1 / 3) + self.shift + keras.ops.convert_to_tensor(1 / 7, self.dtype)
        ), keras.ops.mean(x, -1)


class Net(keras.Model):
    def __init__(self, dtype: str) -> None:
        super().__init__(name="net", dtype=dtype)
        stem = [
            keras.layers.Conv1D(6, 3, name="conv", dtype=dtype),
            keras.layers.BatchNormalization(name="norm", dtype=dtype),
        ]
        self.stem = keras.Sequential(stem, name="stem")
        self.pair = Pair(name="pair", dtype=dtype)
        self.drop = keras.layers.Dropout(0.0, name="drop", dtype=dtype)
        self.cell = keras.layers.GRU(3, name="cell", dtype=dtype)
        self.head = keras.layers.Dense(1, name="head", dtype=dtype)

    def call(self, x, training=None):
        pooled, mean = self.pair(self.stem(x), scale=keras.ops.full((6,), 0.5, dtype=self.dtype))
        return self.head(self.cell(self.drop(pooled))) + keras.ops.mean(mean)


def arrays(value: object, name: str = "") -> dict[str, str]:
    if isinstance(value, (list, tuple)):
        pairs = [arrays(one, f"{name}.{place}".strip(".")) for place, one in enumerate(value)]
        return {key: code for pair in pairs for key, code in pair.items()}
    return {name: sha(np.asarray(value))}


def loss_of(model: keras.Model, x: object, y: object) -> object:
    return keras.losses.MeanSquaredError(dtype=model.dtype)(y, model(x, training=True))


def expected(model: keras.Model, index: int, dtype: str = "float32") -> dict:
    """What a copy of the model takes and gives, by the paths of its layers, and its loss and gradients."""
    twin = Net(dtype)
    twin(X[:SIZE])
    twin.set_weights(model.get_weights())
    outputs: dict[str, dict[str, str]] = {}
    inputs: dict[str, str] = {}
    for name in ("", "stem", "stem/conv", "stem/norm", "pair", "drop", "cell", "head"):
        layer = twin
        for part in filter(None, name.split("/")):
            layer = layer.get_layer(part) if isinstance(layer, keras.Sequential) else getattr(layer, part)
        call = layer.call

        def watched(x: object, *args: object, call=call, name=name, **kwargs: object) -> object:
            result = call(x, *args, **kwargs)
            inputs[name], outputs[name] = arrays(x)[""], arrays(result)
            return result

        layer.call = watched
    x, y = X[:SIZE].astype(dtype), Y[:SIZE].astype(dtype)
    with tf.GradientTape() as tape:
        loss = loss_of(twin, x, y)
    gradients = tape.gradient(loss, twin.trainable_variables)
    named = {f"{index}.{v.path}": sha(g.numpy()) for v, g in zip(twin.trainable_variables, gradients, strict=True)}
    return {"outputs": outputs | {"loss": arrays(loss)}, "inputs": inputs, "gradients": named}


def loop(model: keras.Model, compiled: bool) -> None:
    optimizer = keras.optimizers.SGD(0.1, clipnorm=0.01)

    def step(x: object, y: object) -> None:
        with tf.GradientTape() as tape:
            loss = loss_of(model, x, y)
        optimizer.apply_gradients(
            zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables, strict=True)
        )

    step = tf.function(step) if compiled else step
    for place in range(0, len(X), SIZE):
        model(X[:SIZE])  # an evaluation, of which no gradients are taken
        step(tf.constant(X[place : place + SIZE]), tf.constant(Y[place : place + SIZE]))


def train(scenario: str, model: keras.Model) -> None:
    if scenario == "fit":
        model.compile(keras.optimizers.SGD(0.1, clipnorm=0.01), "mse")
        model.fit(X, Y, batch_size=SIZE, shuffle=False, verbose=0)
    else:
        loop(model, scenario == "compiled")


if __name__ == "__main__":
    for index, scenario in enumerate(sys.argv[1:]):
        keras.utils.set_random_seed(index)
        model = Net("float32")
        model(X[:SIZE])
        said = {"float32": expected(model, index), "float64": expected(model, index, "float64")}
        train(scenario, model)
        weights = [sha(np.asarray(weight)) for weight in model.get_weights()]
        print(json.dumps([said, weights]))
