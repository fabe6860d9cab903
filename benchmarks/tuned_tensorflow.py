"""A loop in TensorFlow, tuned by hand.

Images ready on the device, Keras' layers, an epoch in one tf.function.
"""

import keras
import numpy as np
import tensorflow as tf

from benchmarks.baseline import LEARNING_RATE, MOMENTUM, SEED, begin
from benchmarks.tutorial_tensorflow import network
from repro.trainers.loop.data import MEAN, STD


def ready(images: np.ndarray) -> tf.Tensor:
    """Images uint8 [N, 28, 28] -> normalized float32 [N, 28, 28]."""
    return (tf.cast(tf.constant(images), tf.float32) / 255 - MEAN) / STD


def main() -> None:
    baseline = begin()
    keras.utils.set_random_seed(SEED)
    tf.config.threading.set_intra_op_parallelism_threads(baseline.threads)
    tf.config.experimental.enable_op_determinism()
    data = baseline.dataset
    images, labels = ready(data.train_images), tf.constant(data.train_labels, tf.int32)
    model = network()
    model.build((None, 28, 28))
    slots = [tf.Variable(tf.zeros_like(weight)) for weight in model.trainable_variables]

    @tf.function
    def epoch(batches: tf.Tensor) -> None:
        for i in tf.range(len(batches)):
            with tf.GradientTape() as tape:
                logits = model(tf.gather(images, batches[i]), training=True)
                each = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.gather(labels, batches[i]), logits)
                loss = tf.reduce_mean(each)
            gradients = tape.gradient(loss, model.trainable_variables)
            for weight, slot, gradient in zip(model.trainable_variables, slots, gradients, strict=True):
                slot.assign(MOMENTUM * slot + gradient)
                weight.assign_sub(LEARNING_RATE * slot)

    baseline.call(lambda batches: epoch(tf.constant(batches)))
    right = np.argmax(model(ready(data.test_images), training=False), 1) == data.test_labels
    weights = [np.asarray(weight) for weight in model.trainable_variables]
    baseline.finish(tf.__version__, weights, float(right.mean()) if baseline.whole else None)


if __name__ == "__main__":
    main()
