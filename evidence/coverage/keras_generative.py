"""Networks of Keras that make images, after its examples."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

from evidence.coverage.registry import program
from evidence.coverage.tensorflow_training import Training, fitted, images

binary = keras.losses.BinaryCrossentropy(from_logits=True)


def generator(latent: int = 8, channels: int = 1) -> keras.Model:
    """To images of 16 x 16."""
    return keras.Sequential(
        [
            keras.Input((latent,)),
            layers.Dense(4 * 4 * 8),
            layers.Reshape((4, 4, 8)),
            layers.Conv2DTranspose(8, 4, 2, padding="same"),
            layers.BatchNormalization(),
            layers.LeakyReLU(negative_slope=0.2),
            layers.Conv2DTranspose(4, 4, 2, padding="same"),
            layers.LeakyReLU(negative_slope=0.2),
            layers.Conv2D(channels, 5, padding="same", activation="tanh"),
        ]
    )


def discriminator(channels: int = 1) -> keras.Model:
    """Of images of 16 x 16: a logit."""
    return keras.Sequential(
        [
            keras.Input((16, 16, channels)),
            layers.Conv2D(8, 4, 2, padding="same"),
            layers.LeakyReLU(negative_slope=0.2),
            layers.Conv2D(8, 4, 2, padding="same"),
            layers.LeakyReLU(negative_slope=0.2),
            layers.Flatten(),
            layers.Dropout(0.2),
            layers.Dense(1),
        ]
    )


class Adversarial(keras.Model):
    """A generator and a discriminator, each with its optimizer."""

    def __init__(self, latent: int = 8) -> None:
        super().__init__()
        self.latent, self.seeds = latent, keras.random.SeedGenerator(7)
        self.makes, self.judges = generator(latent), discriminator()

    def compile(self, *_: Any, **options: Any) -> None:
        super().compile(**options)
        self.for_makes, self.for_judges = keras.optimizers.Adam(3e-4, 0.5), keras.optimizers.Adam(3e-4, 0.5)

    def drawn(self, images: Any) -> Any:
        return keras.random.normal((ops.shape(images)[0], self.latent), seed=self.seeds)

    def judged(self, true: Any, made: Any) -> Any:
        """The discriminator's loss, of labels that are noisy."""
        noise = 0.05 * keras.random.uniform((2 * ops.shape(true)[0], 1), seed=self.seeds)
        wanted = ops.concatenate([ops.ones_like(made[:, :1, 0, 0]), ops.zeros_like(true[:, :1, 0, 0])]) + noise
        return binary(wanted, self.judges(ops.concatenate([made, true]), training=True))

    def fooled(self, made: Any) -> Any:
        return binary(ops.zeros_like(made[:, :1, 0, 0]), self.judges(made, training=True))

    def train_step(self, data: Any) -> dict[str, Any]:
        images, *_ = data
        with tf.GradientTape() as tape:
            judged = self.judged(images, self.makes(self.drawn(images), training=True))
        self.for_judges.apply(tape.gradient(judged, self.judges.trainable_weights), self.judges.trainable_weights)
        with tf.GradientTape() as tape:
            fooled = self.fooled(self.makes(self.drawn(images), training=True))
        self.for_makes.apply(tape.gradient(fooled, self.makes.trainable_weights), self.makes.trainable_weights)
        return {"loss": judged + fooled}


class Wasserstein(Adversarial):
    """With a penalty of the gradient's norm."""

    def judged(self, true: Any, made: Any) -> Any:
        share = keras.random.uniform((ops.shape(true)[0], 1, 1, 1), seed=self.seeds)
        between = true + share * (made - true)
        with tf.GradientTape() as tape:
            tape.watch(between)
            result = self.judges(between, training=True)
        norm = ops.sqrt(ops.sum(ops.square(tape.gradient(result, between)), (1, 2, 3)))
        distance = ops.mean(self.judges(made, training=True)) - ops.mean(self.judges(true, training=True))
        return distance + 10.0 * ops.mean(ops.square(norm - 1.0))

    def fooled(self, made: Any) -> Any:
        return -ops.mean(self.judges(made, training=True))


def _pictures(*shape: int) -> list[Any]:
    return [(x * 0.5,) for x, _ in images(*(shape or (4, 16, 16, 1)))]


@program("keras", "dcgan")
def dcgan() -> Training:
    return fitted(Adversarial(), None, None, _pictures())


@program("keras", "wgan-gp")
def wgan() -> Training:
    return fitted(Wasserstein(), None, None, _pictures())


@program("keras", "conditional gan")
def conditional() -> Training:
    """Labels stand beside the noise, and are a channel of images."""
    makes, judges = generator(8 + 4), discriminator(1 + 4)
    for_makes, for_judges = keras.optimizers.Adam(3e-4), keras.optimizers.Adam(3e-4)

    @tf.function(jit_compile=True)
    def step(batch: Any) -> Any:
        images, labels = batch
        planes = tf.tile(labels[:, None, None], [1, 16, 16, 1])
        with tf.GradientTape() as first, tf.GradientTape() as second:
            made = makes(tf.concat([tf.random.normal((4, 8)), labels], -1), training=True)
            false, true = (judges(tf.concat([each, planes], -1), training=True) for each in (made, images))
            judged = binary(tf.ones_like(true), true) + binary(tf.zeros_like(false), false)
            fooled = binary(tf.ones_like(false), false)
        for_judges.apply(first.gradient(judged, judges.trainable_variables), judges.trainable_variables)
        for_makes.apply(second.gradient(fooled, makes.trainable_variables), makes.trainable_variables)
        return judged

    batches = [(x, np.eye(4, dtype=np.float32)[y]) for x, y in images(4, 16, 16, 1, classes=4)]
    return Training(step, (makes, judges, for_makes, for_judges), [tuple(map(tf.constant, each)) for each in batches])


class Sampling(layers.Layer):
    """A sample of a normal distribution, whose divergence from the standard one is a loss."""

    def __init__(self) -> None:
        super().__init__()
        self.seeds = keras.random.SeedGenerator(3)

    def call(self, given: Any) -> Any:
        mean, log_variance = given
        divergence = -0.5 * (1 + log_variance - ops.square(mean) - ops.exp(log_variance))
        self.add_loss(ops.mean(ops.sum(divergence, axis=1)))
        return mean + ops.exp(0.5 * log_variance) * keras.random.normal(ops.shape(mean), seed=self.seeds)


@program("keras", "vae")
def vae() -> Training:
    given = keras.Input((16, 16, 1))
    x = layers.Conv2D(8, 3, 2, activation="relu", padding="same")(given)
    x = layers.Dense(16, activation="relu")(layers.Flatten()(layers.Conv2D(8, 3, 2, activation="relu")(x)))
    z = Sampling()([layers.Dense(2)(x), layers.Dense(2)(x)])
    x = layers.Reshape((4, 4, 8))(layers.Dense(128, activation="relu")(z))
    for _ in range(2):
        x = layers.Conv2DTranspose(8, 3, 2, activation="relu", padding="same")(x)
    model = keras.Model(given, layers.Conv2DTranspose(1, 3, activation="sigmoid", padding="same")(x))
    batches = [((x > 0).astype(np.float32),) * 2 for x, _ in images(4, 16, 16, 1)]
    return fitted(model, keras.optimizers.Adam(1e-3), "binary_crossentropy", batches)


class Quantizer(layers.Layer):
    """The nearest vector of a code book; gradients pass by."""

    def __init__(self, count: int, features: int) -> None:
        super().__init__()
        self.book = self.add_weight(shape=(features, count), initializer="random_uniform")

    def call(self, x: Any) -> Any:
        flat = ops.reshape(x, (-1, x.shape[-1]))
        distance = ops.sum(flat**2, 1, keepdims=True) + ops.sum(self.book**2, 0) - 2 * ops.matmul(flat, self.book)
        codes = ops.one_hot(ops.argmin(distance, 1), self.book.shape[1])
        result = ops.reshape(ops.matmul(codes, ops.transpose(self.book)), ops.shape(x))
        self.add_loss(0.25 * ops.mean((ops.stop_gradient(result) - x) ** 2))
        self.add_loss(ops.mean((result - ops.stop_gradient(x)) ** 2))
        return x + ops.stop_gradient(result - x)


@program("keras", "vq-vae")
def vq_vae() -> Training:
    given = keras.Input((16, 16, 1))
    x = layers.Conv2D(8, 3, 2, activation="relu", padding="same")(given)
    x = Quantizer(16, 4)(layers.Conv2D(4, 1)(x))
    x = layers.Conv2DTranspose(8, 3, 2, activation="relu", padding="same")(x)
    model = keras.Model(given, layers.Conv2DTranspose(1, 3, padding="same")(x))
    return fitted(model, "adam", "mse", [(x, x) for x, _ in images(4, 16, 16, 1)])


def _residual(x: Any, features: int) -> Any:
    h = layers.Conv2D(features, 1)(x) if x.shape[-1] != features else x
    x = layers.BatchNormalization(center=False, scale=False)(x)
    x = layers.Conv2D(features, 3, padding="same", activation="swish")(x)
    return h + layers.Conv2D(features, 3, padding="same")(x)


def denoiser() -> keras.Model:
    """Of noisy images and the variance of their noise: the noise."""
    given, variance = keras.Input((16, 16, 3)), keras.Input((1, 1, 1))
    angles = variance * np.array([6.25, 12.5, 25.0, 50.0], np.float32)
    places = layers.UpSampling2D(16)(layers.Concatenate()([ops.sin(angles), ops.cos(angles)]))
    x = first = _residual(layers.Concatenate()([layers.Conv2D(8, 1)(given), places]), 8)
    x = _residual(layers.AveragePooling2D(2)(x), 12)
    x = layers.UpSampling2D(2, interpolation="bilinear")(x)
    x = _residual(layers.Concatenate()([x, first]), 8)
    return keras.Model([given, variance], layers.Conv2D(3, 1, kernel_initializer="zeros")(x))


class Diffusion(keras.Model):
    """Learns the noise of images, and keeps an average of its weights."""

    def __init__(self) -> None:
        super().__init__()
        self.normalizer = layers.Normalization(mean=0.0, variance=1.3)
        self.normalizer.build((None, 16, 16, 3))
        self.network, self.average = denoiser(), denoiser()
        self.seeds = keras.random.SeedGenerator(5)

    def train_step(self, data: Any) -> dict[str, Any]:
        images = self.normalizer(data[0])
        noise = keras.random.normal(ops.shape(images), seed=self.seeds)
        times = keras.random.uniform((ops.shape(images)[0], 1, 1, 1), seed=self.seeds)
        angles = 0.3176 + times * 1.2332  # from a share of 0.95 of the signal to 0.02
        signal, share = ops.cos(angles), ops.sin(angles)
        with tf.GradientTape() as tape:
            result = self.network([signal * images + share * noise, share**2], training=True)
            loss = ops.mean(ops.abs(noise - result))
        self.optimizer.apply(tape.gradient(loss, self.network.trainable_weights), self.network.trainable_weights)
        for weight, mean in zip(self.network.weights, self.average.weights, strict=True):
            mean.assign(0.999 * mean + 0.001 * weight)
        return {"loss": loss}


@program("keras", "ddim, average of weights")
def ddim() -> Training:
    optimizer = keras.optimizers.AdamW(1e-3, weight_decay=1e-4)
    return fitted(Diffusion(), optimizer, None, _pictures(2, 16, 16, 3))
