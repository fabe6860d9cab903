"""The tutorial's loop in TensorFlow.

tf.data, Keras' layers, optimizer and metrics, a compiled step for each batch.
"""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from benchmarks.baseline import LEARNING_RATE, MOMENTUM, SEED, Baseline, begin


def network() -> keras.Model:
    return keras.Sequential(
        [
            layers.Reshape((28, 28, 1)),
            layers.Conv2D(10, 5),
            layers.MaxPooling2D(2),
            layers.ReLU(),
            layers.Conv2D(20, 5),
            layers.SpatialDropout2D(0.5),
            layers.MaxPooling2D(2),
            layers.ReLU(),
            layers.Flatten(),
            layers.Dense(50, activation="relu"),
            layers.Dropout(0.5),
            layers.Dense(10),
        ]
    )


def dataset(images: np.ndarray, labels: np.ndarray) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices(((images / 255.0).astype(np.float32), labels)).cache()


def main() -> None:
    baseline = begin()
    keras.utils.set_random_seed(SEED)
    tf.config.threading.set_intra_op_parallelism_threads(1)  # as the tutorial does
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.config.experimental.enable_op_determinism()
    model = network()
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = keras.optimizers.SGD(LEARNING_RATE, MOMENTUM)
    train_loss, train_accuracy = keras.metrics.Mean(), keras.metrics.SparseCategoricalAccuracy()

    @tf.function
    def train_step(images: tf.Tensor, labels: tf.Tensor) -> None:
        with tf.GradientTape() as tape:
            logits = model(images, training=True)
            loss = loss_of(labels, logits)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        train_loss(loss)
        train_accuracy(labels, logits)

    data = baseline.dataset
    train_data = dataset(data.train_images, data.train_labels).prefetch(tf.data.AUTOTUNE)
    for epoch in range(1, baseline.epochs + 1):
        train_loss.reset_state()
        train_accuracy.reset_state()
        shuffled = train_data.shuffle(len(data.train_labels), seed=SEED + epoch).batch(baseline.batch_size)
        for images, labels in baseline.timed(iter(shuffled)):
            train_step(images, labels)
    weights = [np.asarray(weight) for weight in model.trainable_variables]
    baseline.finish(tf.__version__, weights, accuracy(model, baseline) if baseline.whole else None)


def accuracy(model: keras.Model, baseline: Baseline) -> float:
    reached = keras.metrics.SparseCategoricalAccuracy()
    for images, labels in dataset(baseline.dataset.test_images, baseline.dataset.test_labels).batch(32):
        reached(labels, model(images, training=False))
    return float(reached.result())


if __name__ == "__main__":
    main()
