"""Networks of TensorFlow's guides and tutorials, with training loops of their own."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from evidence.coverage.registry import program
from evidence.coverage.tensorflow_training import Training, cross_entropy, images, integers, normal, taped, tokens

WORDS = 31
binary = keras.losses.BinaryCrossentropy(from_logits=True)


def _upward(features: int, dropped: bool = False) -> keras.Sequential:
    parts = [layers.Conv2DTranspose(features, 4, 2, padding="same", use_bias=False), layers.BatchNormalization()]
    return keras.Sequential([*parts, *[layers.Dropout(0.5)] * dropped, layers.ReLU()])


def _downward(features: int, normalized: bool = True) -> keras.Sequential:
    start = keras.initializers.RandomNormal(0.0, 0.02)
    parts = [layers.Conv2D(features, 4, 2, padding="same", kernel_initializer=start, use_bias=False)]
    return keras.Sequential([*parts, *[layers.BatchNormalization()] * normalized, layers.LeakyReLU()])


@program("guides", "pix2pix")
def pix2pix() -> Training:
    """A U-Net that draws, and a discriminator of patches."""
    given, wanted = keras.Input((16, 16, 3)), keras.Input((16, 16, 3))
    first = _downward(8, normalized=False)(given)
    x = _upward(8, dropped=True)(_downward(16)(first))
    x = layers.Conv2DTranspose(3, 4, 2, padding="same", activation="tanh")(layers.Concatenate()([x, first]))
    makes = keras.Model(given, x)
    x = _downward(16)(_downward(8, normalized=False)(layers.concatenate([given, wanted])))
    judges = keras.Model([given, wanted], layers.Conv2D(1, 4)(layers.ZeroPadding2D()(x)))
    for_makes, for_judges = keras.optimizers.Adam(2e-4, 0.5), keras.optimizers.Adam(2e-4, 0.5)

    @tf.function
    def step(batch: Any) -> Any:
        drawn, wanted = batch
        with tf.GradientTape() as first, tf.GradientTape() as second:
            made = makes(drawn, training=True)
            true, false = judges([drawn, wanted], training=True), judges([drawn, made], training=True)
            fooled = binary(tf.ones_like(false), false) + 100.0 * tf.reduce_mean(tf.abs(wanted - made))
            judged = binary(tf.ones_like(true), true) + binary(tf.zeros_like(false), false)
        for_makes.apply(first.gradient(fooled, makes.trainable_variables), makes.trainable_variables)
        for_judges.apply(second.gradient(judged, judges.trainable_variables), judges.trainable_variables)
        return fooled

    batches = [tuple(tf.constant(normal(2, 16, 16, 3, key=key + part)) for part in (0, 5)) for key in range(2)]
    return Training(step, (makes, judges, for_makes, for_judges), batches)


@program("guides", "convolutional vae, densities of samples")
def cvae() -> Training:
    encoder = keras.Sequential(
        [
            keras.Input((12, 12, 1)),
            layers.Conv2D(8, 3, 2, activation="relu"),
            layers.Flatten(),
            layers.Dense(4),
        ]
    )
    decoder = keras.Sequential(
        [
            keras.Input((2,)),
            layers.Dense(6 * 6 * 4, activation="relu"),
            layers.Reshape((6, 6, 4)),
            layers.Conv2DTranspose(8, 3, 2, padding="same", activation="relu"),
            layers.Conv2DTranspose(1, 3, padding="same"),
        ]
    )
    model = Pair(encoder, decoder)

    def density(sample: Any, mean: Any, log_variance: Any) -> Any:
        log_2pi = tf.math.log(2.0 * np.pi)
        terms = -0.5 * ((sample - mean) ** 2.0 * tf.exp(-log_variance) + log_variance + log_2pi)
        return tf.reduce_sum(terms, axis=1)

    def loss(x: Any) -> Any:
        mean, log_variance = tf.split(encoder(x), 2, axis=1)
        z = mean + tf.random.normal(mean.shape) * tf.exp(log_variance * 0.5)
        entropy = tf.nn.sigmoid_cross_entropy_with_logits(logits=decoder(z), labels=x)
        given = -tf.reduce_sum(entropy, axis=[1, 2, 3])
        return -tf.reduce_mean(given + density(z, 0.0, 0.0) - density(z, mean, log_variance))

    batches = [(x > 0).astype(np.float32) for x, _ in images(4, 12, 12, 1)]
    return taped(loss, model, keras.optimizers.Adam(1e-3), batches)


class Pair(keras.Model):
    """Two networks, trained together."""

    def __init__(self, first: keras.Model, second: keras.Model) -> None:
        super().__init__()
        self.first, self.second = first, second


class Translator(keras.Model):
    """A recurrent encoder, and a decoder that attends to it: D. Bahdanau, K. Cho, Y. Bengio."""

    def __init__(self, units: int = 12) -> None:
        super().__init__()
        self.source, self.target = layers.Embedding(WORDS, units, mask_zero=True), layers.Embedding(WORDS, units)
        self.encoder = layers.Bidirectional(layers.GRU(units, return_sequences=True), merge_mode="sum")
        self.decoder = layers.GRU(units, return_sequences=True, return_state=True)
        self.query, self.memory, self.score = layers.Dense(units), layers.Dense(units), layers.Dense(1)
        self.last = layers.Dense(WORDS)

    def attended(self, x: Any, memory: Any, mask: Any) -> Any:
        scores = self.score(tf.tanh(self.query(x)[:, :, None] + self.memory(memory)[:, None]))[..., 0]
        weights = tf.nn.softmax(tf.where(mask[:, None], scores, -1e9))
        return tf.einsum("bts,bsf->btf", weights, memory)

    def call(self, given: Any) -> Any:
        source, target = given
        memory = self.encoder(self.source(source))
        x, _ = self.decoder(self.target(target))
        return self.last(tf.concat([x, self.attended(x, memory, source != 0)], -1))


@program("guides", "translation, attention")
def translation() -> Training:
    """A masked loss."""
    model = Translator()
    sparse = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")

    def loss(batch: Any) -> Any:
        source, target = batch
        mask = tf.cast(target[:, 1:] != 0, tf.float32)
        outputs = sparse(target[:, 1:], model((source, target[:, :-1])))
        return tf.reduce_sum(outputs * mask) / tf.reduce_sum(mask)

    batches = [(x, integers(WORDS, 4, 9, key=key + 3)) for key, x in enumerate(tokens(4, 10))]
    model((batches[0][0], batches[0][1][:, :-1]))
    return taped(loss, model, keras.optimizers.Adam(1e-2), batches)


def _places(length: int, features: int) -> Any:
    rates = tf.pow(1e-4, tf.range(features // 2, dtype=tf.float32) / (features / 2))
    angles = tf.range(length, dtype=tf.float32)[:, None] * rates
    return tf.concat([tf.sin(angles), tf.cos(angles)], -1)


class Warmup(keras.optimizers.schedules.LearningRateSchedule):
    """Linear, then the inverse root of the step."""

    def __call__(self, step: Any) -> Any:
        step = tf.cast(step, tf.float32)
        return 0.25 * tf.minimum(tf.math.rsqrt(step + 1.0), (step + 1.0) * 3.0**-1.5)


@program("guides", "transformer")
def transformer() -> Training:
    """With places of sines, Portuguese to English in the guide."""
    source, target = keras.Input((10,), dtype="int32"), keras.Input((8,), dtype="int32")

    def embedded(x: Any, length: int) -> Any:
        return layers.Dropout(0.1)(layers.Embedding(WORDS, 16)(x) * 4.0 + _places(length, 16)[None])

    def fed(x: Any) -> Any:
        h = layers.Dropout(0.1)(layers.Dense(16)(layers.Dense(32, activation="relu")(x)))
        return layers.LayerNormalization()(x + h)

    def attended(x: Any, memory: Any, causal: bool = False) -> Any:
        return layers.LayerNormalization()(
            x + layers.MultiHeadAttention(2, 8, dropout=0.1)(x, memory, use_causal_mask=causal)
        )

    memory = embedded(source, 10)
    memory = fed(attended(memory, memory))
    x = embedded(target, 8)
    x = fed(attended(attended(x, x, causal=True), memory))
    model = keras.Model([source, target], layers.Dense(WORDS)(x))

    def loss(batch: Any) -> Any:
        return cross_entropy()(batch[1][:, 1:], model([batch[0], batch[1][:, :-1]], training=True))

    batches = [(x, integers(WORDS, 4, 9, key=key + 3)) for key, x in enumerate(tokens(4, 10))]
    return taped(loss, model, keras.optimizers.Adam(Warmup(), 0.9, 0.98, 1e-9), batches)


@program("guides", "word2vec")
def word2vec() -> Training:
    """Negative examples by Zipf's law, drawn in a dataset; then a sampled softmax."""
    words, context = tf.Variable(normal(WORDS, 8) * 0.1), tf.Variable(normal(WORDS, 8, key=1) * 0.1)
    pairs = integers(WORDS, 16, 2, key=2)

    def with_negatives(pair: Any) -> Any:
        true = tf.cast(pair[None, 1:], tf.int64)
        drawn, _, _ = tf.random.log_uniform_candidate_sampler(true, 1, 4, True, WORDS, seed=7)
        return pair, tf.concat([true[0], drawn], 0)

    data = tf.data.Dataset.from_tensor_slices(pairs).map(with_negatives).batch(8)

    @tf.function
    def step(batch: Any) -> Any:
        pair, targets = batch
        with tf.GradientTape() as tape:
            x = tf.gather(words, pair[:, 0])
            dots = tf.einsum("be,bce->bc", x, tf.gather(context, targets))
            loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(tf.one_hot(tf.zeros(8, tf.int32), 5), dots))
            sampled = tf.nn.sampled_softmax_loss(context, tf.zeros(WORDS), pair[:, 1:], x, 6, WORDS, seed=8)
            loss += tf.reduce_mean(sampled)
        for variable, gradient in zip((words, context), tape.gradient(loss, [words, context])):  # noqa: B905
            variable.assign_sub(0.5 * tf.convert_to_tensor(gradient))
        return loss

    return Training(step, (words, context), list(data))


@program("guides", "text generation, gru")
def generation() -> Training:
    """Trained, then sampled after each step."""
    model = keras.Sequential(
        [layers.Embedding(WORDS, 12), layers.GRU(16, return_sequences=True), layers.Dropout(0.1), layers.Dense(WORDS)]
    )
    batches = [(x[:, :-1], x[:, 1:]) for x in tokens(4, 13)]
    model(batches[0][0])
    training = taped(
        lambda batch: cross_entropy()(batch[1], model(batch[0], training=True)), model, keras.optimizers.Adam(), batches
    )
    step, text = training.step, tf.Variable(tf.zeros([1, 6], tf.int64))

    def sampled(batch: Any) -> Any:
        loss = step(batch)
        logits = model(text)[:, -1] / 0.8
        text.assign(tf.concat([text[:, 1:], tf.random.categorical(logits, 1)], 1))
        return loss

    training.step, training.state = sampled, (*training.state, text)
    return training
