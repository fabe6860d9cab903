"""A training with Keras' `fit`, whose time with the observer is measured by benchmarks/observing.py."""

import keras
import numpy as np
import tensorflow as tf

from benchmarks.observed import WARM_UP, Loop, options


class Steps(keras.callbacks.Callback):
    """The stopwatch of `fit`."""

    def __init__(self, loop: Loop) -> None:
        super().__init__()
        self.loop = loop

    def on_train_batch_end(self, *_: object, **_logs: object) -> None:
        self.loop.is_over()


def main() -> None:
    _, threads, steps = options("fit")
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    keras.utils.set_random_seed(0)
    relu = {"activation": "relu"}
    convolutions = [keras.layers.Conv2D(32, 3, **relu), keras.layers.Conv2D(64, 3, **relu)]
    dense = [keras.layers.Flatten(), keras.layers.Dense(128, **relu), keras.layers.Dense(10)]
    model = keras.Sequential([keras.Input((28, 28, 1)), *convolutions, keras.layers.MaxPooling2D(), *dense])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(), loss)
    generator = np.random.default_rng(0)
    images = generator.random((64 * (WARM_UP + steps), 28, 28, 1), dtype=np.float32)
    model.fit(images, generator.integers(10, size=len(images)), 64, verbose=0, callbacks=[Steps(Loop(steps))])


if __name__ == "__main__":
    main()
