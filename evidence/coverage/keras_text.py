"""Networks of Keras of words and characters, after its examples."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

from evidence.coverage.keras_images import attended
from evidence.coverage.registry import program
from evidence.coverage.tensorflow_training import Training, cross_entropy, fitted, integers, normal, tokens

WORDS, LENGTH, FEATURES = 31, 12, 16


class Embedded(layers.Layer):
    """Words and their places."""

    def __init__(self, masked: bool = False) -> None:
        super().__init__()
        self.words, self.places = (
            layers.Embedding(WORDS, FEATURES, mask_zero=masked),
            layers.Embedding(LENGTH, FEATURES),
        )

    def call(self, x: Any) -> Any:
        return self.words(x) + self.places(ops.arange(x.shape[-1]))


def _texts(classes: int = 2) -> list[Any]:
    return [(x, integers(classes, len(x), key=key + 2)) for key, x in enumerate(tokens(8, LENGTH))]


@program("keras", "text classification, transformer")
def classification() -> Training:
    given = keras.Input((LENGTH,), dtype="int32")
    x = layers.GlobalAveragePooling1D()(attended(Embedded()(given)))
    x = layers.Dropout(0.1)(layers.Dense(20, activation="relu")(layers.Dropout(0.1)(x)))
    model = keras.Model(given, layers.Dense(2, activation="softmax")(x))
    return fitted(model, "adam", "sparse_categorical_crossentropy", _texts(), metrics=["accuracy"])


@program("keras", "imdb, lstm in both directions")
def imdb() -> Training:
    model = keras.Sequential(
        [
            layers.Embedding(WORDS, FEATURES, mask_zero=True),
            layers.Bidirectional(layers.LSTM(8, return_sequences=True)),
            layers.Bidirectional(layers.LSTM(8, dropout=0.1, recurrent_dropout=0.1)),
            layers.Dense(1, activation="sigmoid"),
        ]
    )
    batches = [(x, y[:, None].astype(np.float32)) for x, y in _texts()]
    return fitted(model, "adam", "binary_crossentropy", batches, metrics=["accuracy"])


@program("keras", "text classification, convolutions")
def convolutions() -> Training:
    model = keras.Sequential(
        [
            layers.Embedding(WORDS, FEATURES),
            layers.Dropout(0.5),
            layers.Conv1D(16, 5, strides=2, activation="relu"),
            layers.SeparableConv1D(16, 3, padding="same", activation="relu"),
            layers.GlobalMaxPooling1D(),
            layers.Dense(1, activation="sigmoid"),
        ]
    )
    batches = [(x, y[:, None].astype(np.float32)) for x, y in _texts()]
    return fitted(model, "adam", "binary_crossentropy", batches)


def _sequences() -> list[Any]:
    """Characters, those to make of them, and the latter one place later: all as vectors of one 1."""
    batches = []
    for key, x in enumerate(tokens(4, LENGTH, vocabulary=WORDS)):
        y = integers(WORDS, 4, LENGTH + 1, key=key + 4)
        given, before, after = (keras.utils.to_categorical(each, WORDS) for each in (x, y[:, :-1], y[:, 1:]))
        batches.append(([given, before], after))
    return batches


@program("keras", "seq2seq of characters, lstm")
def seq2seq_lstm() -> Training:
    source, target = keras.Input((None, WORDS)), keras.Input((None, WORDS))
    _, *state = layers.LSTM(16, return_state=True)(source)
    x, *_ = layers.LSTM(16, return_sequences=True, return_state=True)(target, initial_state=state)
    model = keras.Model([source, target], layers.Dense(WORDS, activation="softmax")(x))
    return fitted(model, "rmsprop", "categorical_crossentropy", _sequences(), metrics=["accuracy"])


@program("keras", "seq2seq of characters, gru")
def seq2seq_gru() -> Training:
    source, target = keras.Input((None, WORDS)), keras.Input((None, WORDS))
    memory, state = layers.GRU(16, return_sequences=True, return_state=True)(source)
    x = layers.GRU(16, return_sequences=True, reset_after=False)(target, initial_state=state)
    x = layers.Concatenate()([x, layers.AdditiveAttention()([x, memory])])
    model = keras.Model([source, target], layers.Dense(WORDS, activation="softmax")(x))
    return fitted(model, "rmsprop", "categorical_crossentropy", _sequences())


@program("keras", "translation, transformer")
def translation() -> Training:
    """Attention between a source and a target."""
    source, target = keras.Input((LENGTH,), dtype="int32"), keras.Input((LENGTH,), dtype="int32")
    memory = attended(Embedded()(source))
    x = Embedded()(target)
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 8)(x, x, use_causal_mask=True))
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 8)(x, memory))
    x = layers.LayerNormalization()(x + layers.Dense(FEATURES)(layers.Dense(32, activation="relu")(x)))
    model = keras.Model([source, target], layers.Dense(WORDS)(layers.Dropout(0.5)(x)))
    batches = []
    for key, x in enumerate(tokens(4, LENGTH)):
        y = integers(WORDS, 4, LENGTH + 1, key=key + 4)
        batches.append(([x, y[:, :-1]], y[:, 1:]))
    return fitted(model, "rmsprop", cross_entropy(), batches)


def _following() -> list[Any]:
    """Words, and those that follow."""
    return [(x[:, :-1], x[:, 1:]) for x in tokens(4, LENGTH + 1)]


@program("keras", "miniature gpt")
def gpt() -> Training:
    given = keras.Input((LENGTH,), dtype="int32")
    x = Embedded()(given)
    for _ in range(2):
        a = layers.MultiHeadAttention(2, 8)(x, x, use_causal_mask=True)
        x = layers.LayerNormalization(epsilon=1e-6)(x + layers.Dropout(0.1)(a))
        h = layers.Dense(FEATURES)(layers.Dense(32, activation="relu")(x))
        x = layers.LayerNormalization(epsilon=1e-6)(x + layers.Dropout(0.1)(h))
    return fitted(keras.Model(given, layers.Dense(WORDS)(x)), "adam", cross_entropy(), _following())


@program("keras", "gpt, rms norm, grouped queries, tied words")
def llama() -> Training:
    words = layers.Embedding(WORDS, FEATURES)
    given = keras.Input((LENGTH,), dtype="int32")
    x = words(given)
    for _ in range(2):
        h = layers.RMSNormalization()(x)
        x = x + layers.GroupQueryAttention(4, 4, 2)(h, h, use_causal_mask=True)
        h = layers.RMSNormalization()(x)
        x = x + layers.Dense(FEATURES)(layers.Dense(32, activation="silu")(h) * layers.Dense(32)(h))
    x = ops.matmul(layers.RMSNormalization()(x), ops.transpose(words.embeddings))
    optimizer = keras.optimizers.AdamW(keras.optimizers.schedules.CosineDecay(1e-3, 10, warmup_steps=2), clipnorm=1.0)
    return fitted(keras.Model(given, x), optimizer, cross_entropy(), _following())


@program("keras", "masked words, bert")
def bert() -> Training:
    """A loss of the places alone whose words were hidden."""
    given = keras.Input((LENGTH,), dtype="int32")
    x = attended(attended(Embedded()(given)))
    x = layers.LayerNormalization()(layers.Dense(FEATURES, activation="gelu")(x))
    model = keras.Model(given, layers.Dense(WORDS, activation="softmax")(x))
    batches = []
    for key, x in enumerate(tokens(4, LENGTH, vocabulary=WORDS - 1)):
        hidden = integers(100, *x.shape, key=key + 6) < 20
        batches.append((np.where(hidden, WORDS - 1, x), x, hidden.astype(np.float32)))
    return fitted(model, "adam", "sparse_categorical_crossentropy", batches)


def _mixed(mix: Callable[[Any], Any]) -> Training:
    """Words that are mixed by a function in the place of attention."""
    given = keras.Input((LENGTH,), dtype="int32")
    x = Embedded()(given)
    x = layers.LayerNormalization()(x + mix(x))
    x = layers.LayerNormalization()(x + layers.Dense(FEATURES)(layers.Dense(32, activation="relu")(x)))
    return fitted(keras.Model(given, layers.Dense(WORDS)(x)), "adam", cross_entropy(), _following())


@program("keras", "fnet, fourier transforms")
def fnet() -> Training:
    return _mixed(lambda x: ops.fft2((x, ops.zeros_like(x)))[0])


@program("keras", "fnet, matrices of cosines and sines")
def fnet_by_matrices() -> Training:
    """The same transforms."""
    (cosines, sines), (across, beside) = map(_waves, (LENGTH, FEATURES))
    return _mixed(lambda x: ops.matmul(ops.matmul(cosines, x), across) - ops.matmul(ops.matmul(sines, x), beside))


def _waves(size: int) -> tuple[Any, Any]:
    angles = np.outer(np.arange(size), np.arange(size)) % size * (2.0 * np.pi / size)
    return tf.cast(tf.cos(angles), tf.float32), tf.cast(tf.sin(angles), tf.float32)


@program("keras", "speech, ctc")
def speech() -> Training:
    """Frames of a spectrogram, convolutions, a recurrent network in both directions."""
    given = keras.Input((24, 8))
    x = layers.Reshape((24, 8, 1))(given)
    x = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(4, 3, (2, 2), padding="same", use_bias=False)(x)))
    x = layers.Bidirectional(layers.GRU(8, return_sequences=True))(layers.Reshape((12, 16))(x))
    model = keras.Model(given, layers.Dense(8)(layers.Dropout(0.5)(x)))
    batches = [(normal(4, 24, 8, key=key), 1 + integers(7, 4, 4, key=key)) for key in range(2)]
    return fitted(model, keras.optimizers.Adam(1e-3), keras.losses.CTC(), batches)


@program("keras", "speech from raw sound")
def speech_from_sound() -> Training:
    """A spectrogram with bands as Mel has them, convolutions, a recurrent network."""
    given = keras.Input((800,))
    x = layers.MelSpectrogram(fft_length=64, sequence_stride=16, num_mel_bins=12, sampling_rate=8000)(given)
    x = layers.Conv1D(16, 5, 2, padding="same", activation="relu")(layers.Permute((2, 1))(x))
    x = layers.Bidirectional(layers.GRU(8))(x)
    model = keras.Model(given, layers.Dense(WORDS)(x))
    batches = [(normal(4, 800, key=key), integers(WORDS, 4, key=key)) for key in range(2)]
    return fitted(model, keras.optimizers.Adam(1e-3), cross_entropy(), batches)


@program("keras", "fourier operator")
def fourier_operator() -> Training:
    """Weights for the lowest frequencies of a signal: Z. Li et al., Fourier Neural Operator, arXiv 2010.08895."""

    class Spectral(layers.Layer):
        def build(self, _: Any) -> None:
            self.real, self.imaginary = (self.add_weight(shape=(6, 6, 5)) for _ in range(2))

        def call(self, x: Any) -> Any:
            spectrum = tf.signal.rfft(tf.transpose(x, (0, 2, 1)))
            kept = tf.einsum("bim,iom->bom", spectrum[..., :5], tf.complex(self.real, self.imaginary))
            made = tf.pad(kept, ((0, 0), (0, 0), (0, spectrum.shape[-1] - 5)))
            return tf.transpose(tf.signal.irfft(made), (0, 2, 1))

    given = keras.Input((16, 1))
    x = layers.Dense(6)(given)
    x = layers.Activation("gelu")(Spectral()(x) + layers.Dense(6)(x))
    model = keras.Model(given, layers.Dense(1)(x))
    inputs = [normal(4, 16, 1, key=key) for key in range(2)]
    return fitted(model, keras.optimizers.Adam(1e-3), "mse", [(x, np.roll(x, 1, 1)) for x in inputs])


@program("keras", "tagging, convolutions over characters and lstm")
def tagging() -> Training:
    """Each word of its characters, and of its neighbors."""
    given = keras.Input((6, 5), dtype="int32")
    x = layers.Embedding(WORDS, 8)(given)
    x = layers.TimeDistributed(layers.Conv1D(8, 3, padding="causal", activation="tanh"))(x)
    x = layers.TimeDistributed(layers.GlobalMaxPooling1D())(x)
    x = layers.Bidirectional(layers.SimpleRNN(8, return_sequences=True), merge_mode="sum")(x)
    model = keras.Model(given, layers.Dense(4)(x))
    batches = [(integers(WORDS, 4, 6, 5, key=key), integers(4, 4, 6, key=key + 3)) for key in range(2)]
    return fitted(model, "nadam", cross_entropy(), batches)
