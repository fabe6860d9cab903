"""Layers of Keras that the examples do not have, several in a network."""

import tempfile
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

from evidence.coverage.registry import program
from evidence.coverage.tensorflow_training import Training, cross_entropy, fitted, images, integers, normal

ACTIVATIONS = (
    *("relu", "sigmoid", "softplus", "softsign", "tanh", "selu", "elu", "exponential", "leaky_relu", "relu6", "silu"),
    *("hard_sigmoid", "gelu", "mish", "log_softmax", "celu", "log_sigmoid", "hard_tanh", "hard_shrink", "soft_shrink"),
    *("squareplus", "sparse_plus", "tanh_shrink", "softmax", "hard_silu", "sparse_sigmoid", "sparsemax"),
)
INITIALIZERS = (
    *("glorot_normal", "he_uniform", "lecun_normal", "orthogonal", "truncated_normal", "variance_scaling", "identity"),
)


def _stacked(*parts: Any, shape: tuple[int, ...] = (12, 12, 3), **options: Any) -> Training:
    """Layers in a row, and a classifier."""
    model = keras.Sequential([keras.Input(shape), *parts, layers.Flatten(), layers.Dense(10)])
    optimizer = keras.optimizers.SGD(1e-2, momentum=0.9)
    return fitted(model, optimizer, cross_entropy(), images(4, *shape), **options)


@program("keras", "activations")
def activations() -> Training:
    parts = [part for name in ACTIVATIONS for part in (layers.Dense(6), layers.Activation(name))]
    return _stacked(*parts, layers.PReLU(), layers.ReLU(4.0, 0.1, 0.2), shape=(6,))


@program("keras", "normalizations")
def normalizations() -> Training:
    return _stacked(
        layers.Conv2D(8, 3),
        layers.GroupNormalization(4),
        layers.SpectralNormalization(layers.Conv2D(8, 1)),
        layers.RMSNormalization(),
        layers.LayerNormalization(axis=(1, 2, 3)),
        layers.UnitNormalization(),
        layers.BatchNormalization(momentum=0.9),
    )


@program("keras", "initializers, regularizers, constraints")
def initializers() -> Training:
    parts = [layers.Dense(8, kernel_initializer=name) for name in INITIALIZERS]
    return _stacked(
        *parts,
        layers.Dense(
            8,
            kernel_regularizer=keras.regularizers.L1L2(1e-3, 1e-3),
            activity_regularizer="l2",
            kernel_constraint="max_norm",
        ),
        layers.Dense(8, kernel_regularizer=keras.regularizers.OrthogonalRegularizer(), kernel_constraint="unit_norm"),
        layers.Dense(8, kernel_constraint="non_neg", bias_constraint=keras.constraints.MinMaxNorm(0.1, 0.9)),
        shape=(8,),
    )


@program("keras", "convolutions of all kinds")
def convolutions() -> Training:
    return _stacked(
        layers.Conv2D(8, 3, dilation_rate=2, padding="same"),
        layers.Conv2D(8, 3, groups=2, strides=2, padding="same"),
        layers.DepthwiseConv2D(3, depth_multiplier=2, padding="same"),
        layers.SeparableConv2D(8, 3, padding="same", activation="relu"),
        layers.Conv2DTranspose(4, 3, strides=2, padding="same", output_padding=1),
        layers.Reshape((12, 48)),
        layers.Conv1D(8, 3, padding="causal", dilation_rate=2),
        layers.DepthwiseConv1D(3),
        layers.Conv1DTranspose(8, 3, strides=2),
        layers.Reshape((3, 7, 8, 1)),
        layers.Conv3D(4, 2, padding="same"),
        layers.Conv3DTranspose(2, 2),
    )


@program("keras", "pooling, padding, sizes")
def pooling() -> Training:
    return _stacked(
        layers.ZeroPadding2D(((1, 2), (2, 1))),
        layers.AveragePooling2D(3, 2, padding="same"),
        layers.UpSampling2D(2, interpolation="bicubic"),
        layers.MaxPooling2D(3, 1),
        layers.Cropping2D(1),
        layers.Resizing(9, 11, interpolation="bilinear"),
        layers.UpSampling2D(2),
        layers.CenterCrop(12, 12),
        layers.Reshape((12, 36)),
        layers.AveragePooling1D(2),
        layers.MaxPooling1D(2, padding="same"),
        layers.UpSampling1D(2),
    )


@program("keras", "noise, dropout of all kinds")
def noise() -> Training:
    return _stacked(
        layers.Conv2D(8, 3),
        layers.SpatialDropout2D(0.2),
        layers.GaussianNoise(0.1),
        layers.GaussianDropout(0.2),
        layers.AlphaDropout(0.1),
        layers.ActivityRegularization(1e-3),
        layers.Dropout(0.3, noise_shape=(None, 1, 10, 8)),
    )


@program("keras", "recurrent layers and cells")
def recurrent() -> Training:
    return _stacked(
        layers.Masking(),
        layers.RNN([layers.LSTMCell(6), layers.GRUCell(5), layers.SimpleRNNCell(4)], return_sequences=True),
        layers.GRU(6, return_sequences=True, reset_after=False, recurrent_dropout=0.1),
        layers.Bidirectional(layers.LSTM(4, return_sequences=True), merge_mode="ave"),
        layers.SimpleRNN(4, unroll=True, go_backwards=True, return_sequences=True),
        layers.Reshape((8, 4, 1)),
        layers.ConvLSTM1D(3, 2, return_sequences=True),
        shape=(8, 6),
    )


@program("keras", "attention of all kinds")
def attention() -> Training:
    given = keras.Input((8, 8))
    x = layers.Attention(use_scale=True, score_mode="dot", dropout=0.1)([given, given])
    x = layers.AdditiveAttention()([x, given])
    x = layers.MultiHeadAttention(2, 4, value_dim=3, attention_axes=(1,))(x, given)
    x = layers.GroupQueryAttention(4, 4, 2, dropout=0.1)(x, x, use_causal_mask=True)
    x = layers.EinsumDense("abc,cd->abd", (None, 6), bias_axes="d")(layers.Dot(axes=1)([x, given]))
    model = keras.Model(given, layers.Dense(10)(layers.GlobalAveragePooling1D()(x)))
    batches = [(normal(4, 8, 8, key=key), integers(10, 4, key=key)) for key in range(2)]
    return fitted(model, "adam", cross_entropy(), batches)


@program("keras", "augmentation of colors and shapes")
def augmentation() -> Training:
    """Of images of 0 to 255."""
    parts = (
        layers.RandAugment(),
        layers.AugMix(),
        layers.RandomColorJitter(brightness_factor=0.2, contrast_factor=0.2, saturation_factor=0.2, hue_factor=0.2),
        layers.RandomShear(0.1, 0.1),
        layers.RandomPerspective(),
        layers.RandomElasticTransform(),
        layers.RandomGaussianBlur(),
        layers.RandomSharpness(0.2),
        layers.RandomPosterization(4),
        layers.RandomGrayscale(),
        layers.Equalization(),
        layers.AutoContrast(),
        layers.Solarization(),
    )
    pictures = []
    for number, part in enumerate(parts):
        x = integers(256, 4, 12, 12, 3, key=number).astype(np.float32)
        pictures.append((part(x, training=True) / 255.0, integers(10, 4, key=number)))
    model = keras.Sequential([keras.Input((12, 12, 3)), layers.Flatten(), layers.Dense(10)])
    training = fitted(model, "sgd", cross_entropy(), pictures)
    training.state = (model, [x for x, _ in pictures])
    return training


@program("keras", "words of texts, tf-idf")
def texts() -> Training:
    """Vectors that Keras makes of texts, and of categories."""
    words = ["a", "b", "c", "d", "e"]
    vectorize = layers.TextVectorization(vocabulary=words, idf_weights=[0.3, 0.4, 0.5, 0.6, 0.7], output_mode="tf_idf")
    sides = layers.Discretization([-1.0, 0.0, 1.0], output_mode="one_hot")
    texts = tf.constant(["a b b", "c d x", "e e e a", "b"]), tf.constant(["d", "a a a", "c b", "x e"])
    batches = []
    for key, text in enumerate(texts):
        numbers = sides(normal(4, 1, key=key))
        batches.append((ops.concatenate([vectorize(text), ops.cast(numbers, "float32")], 1), integers(3, 4, key=key)))
    model = keras.Sequential([keras.Input((10,)), layers.Dense(8, activation="relu"), layers.Dense(3)])
    metrics = ["accuracy", keras.metrics.SparseTopKCategoricalAccuracy(2)]
    return fitted(model, "adam", cross_entropy(), batches, metrics=metrics)


@program("keras", "saved, loaded, trained on")
def saved() -> Training:
    model = keras.Sequential([keras.Input((12, 12, 3)), layers.Conv2D(4, 3), layers.Flatten(), layers.Dense(10)])
    model.compile("adam", cross_entropy())
    x, y = images(4, 12, 12, 3)[0]
    model.fit(x, y, verbose=0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.keras"
        model.save(path)
        loaded = keras.models.load_model(path)
    step = lambda batch: loaded.train_on_batch(*batch, return_dict=True)["loss"]  # noqa: E731
    return Training(step, loaded, images(4, 12, 12, 3))
