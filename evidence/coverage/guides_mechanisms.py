"""Programs of TensorFlow's guides: ways to train a small network."""

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from evidence.coverage.registry import program
from evidence.coverage.tensorflow_training import (
    DEVICES,
    Training,
    cross_entropy,
    fitted,
    images,
    integers,
    normal,
    taped,
)


def network() -> keras.Sequential:
    """Of images of 12 x 12, with BatchNorm and dropout: logits of ten classes."""
    return keras.Sequential(
        [
            keras.Input((12, 12, 1)),
            layers.Conv2D(8, 3, use_bias=False),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.MaxPooling2D(2),
            layers.Flatten(),
            layers.Dropout(0.2),
            layers.Dense(10, dtype="float32"),
        ]
    )


def batches() -> list[Any]:
    return images(4, 12, 12, 1)


def _own_loop(**options: Any) -> Training:
    model = network()
    loss = lambda batch: cross_entropy()(batch[1], model(batch[0], training=True))  # noqa: E731
    return taped(loss, model, keras.optimizers.Adam(1e-3), batches(), **options)


@program("guides", "training loop of its own")
def loop() -> Training:
    return _own_loop()


@program("guides", "training loop of its own, jit_compile")
def compiled() -> Training:
    return _own_loop(jit_compile=True)


@program("guides", "fit, run_eagerly")
def eager() -> Training:
    return fitted(network(), "adam", cross_entropy(), batches(), run_eagerly=True)


@program("guides", "fit, steps_per_execution, callbacks")
def steps() -> keras.Model:
    model = network()
    model.compile("adam", cross_entropy(), metrics=["accuracy"], steps_per_execution=2, jit_compile=True)
    (x, y), (other, labels) = batches()
    rates = keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.9)
    given = np.concatenate([x, other, x]), np.concatenate([y, labels, y])
    model.fit(*given, batch_size=4, epochs=2, verbose=0, validation_split=0.25, callbacks=[rates])
    return model


def _reduced(policy: str, optimizer: Any) -> Training:
    keras.config.set_dtype_policy(policy)
    return fitted(network(), optimizer, cross_entropy(), batches())


@program("guides", "mixed precision, bfloat16")
def mixed_bfloat16() -> Training:
    return _reduced("mixed_bfloat16", keras.optimizers.AdamW(1e-3))


@program("guides", "mixed precision, float16")
def mixed_float16() -> Training:
    return _reduced("mixed_float16", keras.optimizers.Adam(1e-3))


@program("guides", "bfloat16 alone")
def bfloat16() -> Training:
    return _reduced("bfloat16", keras.optimizers.SGD(1e-2, momentum=0.9))


@program("guides", "float64")
def float64() -> Training:
    keras.config.set_floatx("float64")
    return _reduced("float64", keras.optimizers.Adam(1e-3))


@program("guides", "datasets")
def datasets() -> keras.Model:
    """Images that are changed by parallel threads, shuffled, batched ahead."""
    x, y = (np.concatenate(each) for each in zip(*batches(), strict=True))

    def changed(image: Any, label: Any) -> Any:
        image = tf.image.stateless_random_flip_left_right(image, [label, 3])
        image = tf.image.stateless_random_brightness(image, 0.2, [label, 4])
        return tf.image.per_image_standardization(tf.tanh(image)), label

    data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(8, seed=1)
    data = data.map(changed, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True).cache().repeat(5)
    model = network()
    model.compile("adam", cross_entropy())
    model.fit(data.batch(8).prefetch(2), verbose=0)
    return model


@program("guides", "datasets of pictures")
def pictures() -> keras.Model:
    """Files of bytes, in folders of their classes: decoded and resized."""
    with tempfile.TemporaryDirectory() as folder:
        for number in range(10):
            path = Path(folder) / f"{number % 2}" / f"{number}.png"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(tf.io.encode_png(integers(256, 15, 17, 1, key=number).astype(np.uint8)).numpy())
        data = keras.utils.image_dataset_from_directory(
            folder, batch_size=2, image_size=(12, 12), color_mode="grayscale", seed=3, verbose=False
        )
        model = network()
        model.compile("adam", cross_entropy())
        model.fit(data.map(lambda x, y: (x / 255.0, y)), verbose=0)
    return model


@cache
def mirrored() -> tf.distribute.Strategy:
    """One for the process: those of the same devices get in one another's way."""
    return tf.distribute.MirroredStrategy(DEVICES)


@program("guides", "two replicas")
def replicas() -> keras.Model:
    with mirrored().scope():
        model = network()
        model.compile(keras.optimizers.SGD(1e-2, momentum=0.9), cross_entropy())
    for _ in range(2):
        for x, y in batches():
            model.fit(x, y, batch_size=4, verbose=0)
    return model


@program("guides", "two replicas, a training loop of its own")
def replicas_loop() -> Training:
    strategy = mirrored()
    with strategy.scope():
        weights = tf.Variable(normal(8, 3))
        mean = tf.Variable(
            0.0, aggregation=tf.VariableAggregation.MEAN, synchronization=tf.VariableSynchronization.ON_READ
        )

    def each(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.softplus(x @ weights))
        gradient = tape.gradient(loss, weights)
        gradient = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, gradient)
        weights.assign_sub(0.1 * gradient)
        mean.assign(loss)
        return loss

    @tf.function
    def step(x: Any) -> Any:
        given = strategy.experimental_distribute_values_from_function(lambda c: x[c.replica_id_in_sync_group])
        losses = strategy.run(each, args=(given,))
        return strategy.reduce(tf.distribute.ReduceOp.MEAN, losses, axis=None)

    return Training(step, (weights.values, mean.values), [normal(2, 4, 8, key=key) for key in range(2)])
