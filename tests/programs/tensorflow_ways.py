"""Ways round TensorFlow's operations under the mode: how Keras compiles a step, parallel data, sessions, conversions.

    python tensorflow_ways.py

Prints JSON: SHA-256 of the results of each way, and conversions with another result.
"""

import hashlib
import json
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from programs import conversion_cases
from repro.portable.modes import tensorflow as portable

COMPILED: dict[str, dict[str, Any]] = {
    "plain": {},
    "jit_compile": {"jit_compile": True},
    "run_eagerly": {"run_eagerly": True},
    "steps_per_execution": {"steps_per_execution": 4},
}
NUMBERS = np.linspace(-50, 50, 1000, dtype=np.float32)
layers = keras.layers


def digest(arrays: Any) -> str:
    return hashlib.sha256(b"".join(np.asarray(each).tobytes() for each in arrays)).hexdigest()


def fit(how: dict[str, Any]) -> str:
    """The weights of a small network after two epochs, the last step of each a smaller batch."""
    keras.utils.set_random_seed(0)
    random = np.random.Generator(np.random.Philox(key=[8, 1]))
    images, classes = random.standard_normal((22, 12, 12, 3), np.float32), np.arange(22) % 5
    convolution = [layers.Conv2D(8, 3), layers.BatchNormalization(), layers.ReLU(), layers.MaxPooling2D(2)]
    rest = [layers.Flatten(), layers.Dense(8, "gelu"), layers.Dropout(0.2), layers.Dense(5)]
    model = keras.Sequential([keras.Input((12, 12, 3)), *convolution, *rest])
    model.compile(keras.optimizers.Adam(1e-2), keras.losses.SparseCategoricalCrossentropy(from_logits=True), **how)
    model.fit(images, classes, batch_size=4, epochs=2, verbose=0)
    return digest(model.get_weights())


def computed(x: Any) -> Any:
    return tf.exp(tf.sin(x)) / tf.math.log1p(tf.abs(x))


def of_data(**options: Any) -> list[Any]:
    return list(tf.data.Dataset.from_tensor_slices(NUMBERS).map(computed, **options).batch(7))


def of_session() -> list[Any]:
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.float32, [None])
        return [session.run(computed(x), {x: NUMBERS})]


def fractions(numbers: np.ndarray, target: str) -> np.ndarray:
    """A conversion in a data set that is mapped in parallel."""
    data = tf.data.Dataset.from_tensors(numbers).map(lambda x: tf.cast(x, target), num_parallel_calls=2)
    return next(iter(data)).numpy()


CONVERSIONS: dict[str, Callable[[np.ndarray, str], np.ndarray]] = {
    "function": lambda x, target: tf.function(tf.cast)(x, target).numpy(),
    "data": fractions,
    "keras": lambda x, target: keras.ops.convert_to_numpy(keras.ops.cast(x, target)),
}


def conversions() -> list[str]:
    numbers = np.array(conversion_cases.NUMBERS * conversion_cases.COPIES)
    with np.errstate(all="ignore"):
        floats = {"float32": numbers.astype(np.float32)}
    lines = []
    for name, convert in CONVERSIONS.items():
        kind = lambda source, target, convert=convert: convert(floats[source], target)  # noqa: E731
        some = {source: x[: len(conversion_cases.NUMBERS)] for source, x in floats.items()}
        lines += [f"{name}: {line}" for line in conversion_cases.wrong(some, kind)]
    return lines


if __name__ == "__main__":
    portable.enable()
    data = {
        "one after the other": of_data(),
        "two": of_data(num_parallel_calls=2),
        "tuned": of_data(num_parallel_calls=tf.data.AUTOTUNE),
        "eager": [computed(tf.constant(NUMBERS))],
        "session": of_session(),
    }
    results = {
        "fit": {name: fit(how) for name, how in COMPILED.items()},
        "data": {name: digest(arrays) for name, arrays in data.items()},
        "conversions": conversions(),
    }
    print(json.dumps(results))
