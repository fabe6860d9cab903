"""Networks of Keras of densities and styles, after its examples."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

from evidence.coverage.registry import program
from evidence.coverage.tensorflow_training import Training, fitted, images, normal

LOG_2PI = 1.837877


class Masked(layers.Layer):
    """A convolution that sees what was drawn before."""

    def __init__(self, kind: str, features: int, size: int) -> None:
        super().__init__()
        self.convolution, self.kind, self.size = layers.Conv2D(features, size, padding="same"), kind, size

    def build(self, shape: Any) -> None:
        self.convolution.build(shape)
        mask = np.zeros(self.convolution.kernel.shape, np.float32)
        middle = self.size // 2
        mask[:middle] = mask[middle, :middle] = 1.0
        if self.kind == "B":
            mask[middle, middle] = 1.0
        self.mask = mask

    def call(self, x: Any) -> Any:
        self.convolution.kernel.assign(self.convolution.kernel * self.mask)
        return self.convolution(x)


@program("keras", "pixelcnn")
def pixel_cnn() -> Training:
    given = keras.Input((12, 12, 1))
    x = layers.ReLU()(Masked("A", 8, 7)(given))
    for _ in range(2):
        h = layers.Conv2D(4, 1, activation="relu")(x)
        x = x + layers.Conv2D(8, 1, activation="relu")(layers.ReLU()(Masked("B", 4, 3)(h)))
    model = keras.Model(given, layers.Conv2D(1, 1, activation="sigmoid")(x))
    batches = [((x > 0).astype(np.float32),) * 2 for x, _ in images(4, 12, 12, 1)]
    return fitted(model, keras.optimizers.Adam(5e-4), "binary_crossentropy", batches)


def _coupling() -> keras.Model:
    given = keras.Input((2,))
    ends = []
    for last in ("tanh", "linear"):
        x = given
        for _ in range(2):
            x = layers.Dense(16, activation="relu", kernel_regularizer=keras.regularizers.l2(0.01))(x)
        ends.append(layers.Dense(2, activation=last)(x))
    return keras.Model(given, ends)


class Flow(keras.Model):
    """Affine couplings of two numbers: the logarithm of their density is the loss."""

    def __init__(self) -> None:
        super().__init__()
        self.masks = [np.array(mask, np.float32) for mask in ([0, 1], [1, 0]) * 2]
        self.couplings = [_coupling() for _ in self.masks]

    def call(self, x: Any) -> Any:
        volume = ops.zeros(ops.shape(x)[:1])
        for mask, coupling in zip(self.masks, self.couplings, strict=True):
            scale, shift = coupling(x * mask)
            scale, shift = scale * (1 - mask), shift * (1 - mask)
            x = x * mask + (1 - mask) * (x * ops.exp(-scale) - shift * ops.exp(-scale))
            volume = volume - ops.sum(scale, 1)
        return x, volume

    def compute_loss(self, x: Any = None, y: Any = None, y_pred: Any = None, *_: Any, **__: Any) -> Any:
        latent, volume = y_pred
        density = -0.5 * ops.sum(latent**2, 1) - LOG_2PI
        return -ops.mean(density + volume) + sum(self.losses)


@program("keras", "real nvp")
def real_nvp() -> Training:
    return fitted(Flow(), keras.optimizers.Adam(1e-3), None, [(normal(16, 2, key=key),) for key in range(2)])


def _features() -> keras.Model:
    """Activations of a network that is not trained."""
    given = keras.Input((16, 16, 3))
    first = layers.Conv2D(8, 3, activation="relu", padding="same", name="first")(given)
    second = layers.Conv2D(8, 3, activation="relu", padding="same")(layers.MaxPooling2D(2)(first))
    return keras.Model(given, [first, second])


@program("keras", "neural style transfer")
def style() -> Training:
    """An image is trained: its style, its content and its total variation."""
    network, content, wanted = _features(), normal(1, 16, 16, 3), normal(1, 16, 16, 3, key=1)
    image = tf.Variable(normal(1, 16, 16, 3, key=2))
    optimizer = keras.optimizers.SGD(keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.96))

    def gram(x: Any) -> Any:
        flat = tf.reshape(tf.transpose(x, (0, 3, 1, 2)), (8, -1))
        return tf.matmul(flat, flat, transpose_b=True)

    @tf.function
    def step(_: Any) -> Any:
        with tf.GradientTape() as tape:
            (a, b), (_, c), (d, _) = network(image), network(content), network(wanted)
            loss = 1e-2 * tf.reduce_sum((b - c) ** 2) + 1e-6 * tf.reduce_sum((gram(a) - gram(d)) ** 2)
            loss += 1e-4 * tf.reduce_sum(tf.image.total_variation(image)) + 1e-4 * tf.reduce_sum(tf.abs(image) ** 1.25)
        optimizer.apply_gradients([(tape.gradient(loss, image), image)])
        return loss

    return Training(step, (image, optimizer), [None])


@program("keras", "deep dream")
def dream() -> Training:
    """An image climbs activations, in octaves of its size."""
    network = keras.Sequential([layers.Conv2D(8, 3, activation="relu"), layers.Conv2D(8, 3, 2, activation="relu")])
    image = tf.Variable(normal(1, 24, 24, 3))

    def step(size: Any) -> Any:
        x = tf.image.resize(image, (size, size))
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_mean(network(x)[:, 2:-2, 2:-2] ** 2)
        gradient = tape.gradient(loss, x)
        gradient /= tf.maximum(tf.reduce_mean(tf.abs(gradient)), 1e-6)
        image.assign(tf.image.resize(x + 0.01 * gradient, (24, 24), method="bicubic"))
        return loss

    return Training(step, (network, image), [17, 20])
