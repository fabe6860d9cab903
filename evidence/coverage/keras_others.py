"""Networks of Keras of tables, time series, graphs and games, after its examples."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

from evidence.coverage.keras_images import attended
from evidence.coverage.registry import program
from evidence.coverage.tensorflow_training import Training, cross_entropy, fitted, integers, normal


@program("keras", "wide, deep and cross networks")
def wide_and_deep() -> Training:
    """Of numbers and categories."""
    numbers, kinds = keras.Input((5,)), keras.Input((3,), dtype="int32")
    wide = layers.Concatenate()(
        [numbers, *[layers.CategoryEncoding(7, output_mode="one_hot")(kinds[:, each]) for each in range(3)]]
    )
    deep = layers.Concatenate()([numbers, layers.Flatten()(layers.Embedding(7, 4)(kinds))])
    x = deep
    for _ in range(2):
        x = deep * layers.Dense(17)(x) + x  # crosses
    h = layers.Dropout(0.1)(layers.ReLU()(layers.BatchNormalization()(layers.Dense(16)(deep))))
    result = layers.Dense(2, activation="softmax")(layers.Concatenate()([layers.BatchNormalization()(wide), x, h]))
    batches = [([normal(8, 5, key=key), integers(7, 8, 3, key=key)], integers(2, 8, key=key + 2)) for key in range(2)]
    metrics = ["sparse_categorical_accuracy"]
    return fitted(
        keras.Model([numbers, kinds], result), "adam", "sparse_categorical_crossentropy", batches, metrics=metrics
    )


@program("keras", "imbalanced classes, weights")
def imbalanced() -> Training:
    model = keras.Sequential(
        [
            keras.Input((6,)),
            layers.Normalization(mean=0.1, variance=1.2),
            layers.Dense(16, activation="relu"),
            layers.Dropout(0.3),
            layers.Dense(1, activation="sigmoid"),
        ]
    )
    metrics = [keras.metrics.AUC(), keras.metrics.Precision(), keras.metrics.FalseNegatives()]
    batches = []
    for key in range(2):
        y = (integers(10, 16, 1, key=key) < 2).astype(np.float32)
        batches.append((normal(16, 6, key=key), y, np.where(y[:, 0] > 0, 4.0, 0.6).astype(np.float32)))
    return fitted(model, keras.optimizers.Adam(1e-2), "binary_crossentropy", batches, weighted_metrics=metrics)


@program("keras", "recommendation, products of embeddings")
def recommendation() -> Training:
    given = keras.Input((2,), dtype="int32")
    users, films = (layers.Embedding(20, 8, embeddings_regularizer="l2")(given[:, each]) for each in range(2))
    score = ops.sum(users * films, 1, keepdims=True) + layers.Embedding(20, 1)(given[:, 0])
    batches = [(integers(20, 16, 2, key=key), normal(16, 1, key=key) * 0.25 + 0.5) for key in range(2)]
    return fitted(keras.Model(given, ops.sigmoid(score)), "adagrad", "binary_crossentropy", batches)


@program("keras", "weather, lstm")
def weather() -> keras.Model:
    """Windows of a series, by Keras' own dataset, in `fit`."""
    series = normal(60, 4)
    data = keras.utils.timeseries_dataset_from_array(series[:-6], series[6:, 0], 6, sampling_rate=2, batch_size=8)
    model = keras.Sequential([layers.LSTM(8), layers.Dense(1)])
    model.compile(keras.optimizers.Adam(1e-2), "mse")
    model.fit(data.take(5), validation_data=data.take(1), verbose=0, callbacks=[keras.callbacks.ReduceLROnPlateau()])
    return model


@program("keras", "time series, transformer")
def series_transformer() -> Training:
    given = keras.Input((20, 1))
    x = layers.Conv1D(8, 3, padding="same")(given)
    x = attended(x, features=8)
    h = layers.Dropout(0.2)(layers.Dense(16, activation="relu")(layers.GlobalAveragePooling1D("channels_first")(x)))
    batches = [(normal(8, 20, 1, key=key), integers(3, 8, key=key)) for key in range(2)]
    return fitted(keras.Model(given, layers.Dense(3)(h)), keras.optimizers.Adam(1e-3), cross_entropy(), batches)


@program("keras", "next frames, convolutional lstm")
def frames() -> Training:
    given = keras.Input((4, 10, 10, 1))
    x = layers.ConvLSTM2D(4, 3, padding="same", return_sequences=True, activation="relu")(given)
    x = layers.ConvLSTM2D(4, 1, padding="same", return_sequences=True)(layers.BatchNormalization()(x))
    model = keras.Model(given, layers.Conv3D(1, 3, activation="sigmoid", padding="same")(x))
    batches = []
    for key in range(2):
        clips = (normal(2, 5, 10, 10, 1, key=key) > 0).astype(np.float32)
        batches.append((clips[:, :-1], clips[:, 1:]))
    return fitted(model, "adam", "binary_crossentropy", batches)


@program("keras", "volumes, convolutions")
def volumes() -> Training:
    model = keras.Sequential(
        [
            layers.Conv3D(4, 3, activation="relu"),
            layers.MaxPooling3D(2),
            layers.BatchNormalization(),
            layers.GlobalAveragePooling3D(),
            layers.Dense(1, activation="sigmoid"),
        ]
    )
    batches = [(normal(2, 10, 10, 10, 1, key=key), integers(2, 2, 1, key=key).astype(np.float32)) for key in range(2)]
    return fitted(model, "adam", "binary_crossentropy", batches)


class GraphAttention(layers.Layer):
    """Each node's neighbors, weighted by a softmax over its edges."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.dense, self.score = layers.Dense(features), layers.Dense(1, activation="leaky_relu")

    def call(self, given: Any) -> Any:
        nodes, edges = given
        x = self.dense(nodes)
        ends = tf.gather(x, edges)
        scores = self.score(tf.reshape(ends, (-1, 2 * x.shape[1])))[:, 0]
        weights = tf.exp(tf.clip_by_value(scores, -2.0, 2.0))
        sums = tf.math.unsorted_segment_sum(weights, edges[:, 0], nodes.shape[0])
        weights = weights / tf.gather(sums, edges[:, 0])
        return tf.math.unsorted_segment_sum(ends[:, 1] * weights[:, None], edges[:, 0], nodes.shape[0])


@program("keras", "graph attention")
def graph() -> Training:
    edges = np.concatenate([np.stack([np.arange(10)] * 2, 1), integers(10, 30, 2, key=7)]).astype(np.int32)
    first, second = GraphAttention(8), GraphAttention(3)
    optimizer = keras.optimizers.SGD(0.3, momentum=0.9)

    @tf.function
    def step(batch: Any) -> Any:
        nodes, labels = batch
        with tf.GradientTape() as tape:
            logits = second((tf.nn.elu(first((nodes, edges))), edges))
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        weights = first.trainable_variables + second.trainable_variables
        optimizer.apply(tape.gradient(loss, weights), weights)
        return loss

    batches = [(tf.constant(normal(10, 5, key=key)), tf.constant(integers(3, 10, key=key))) for key in range(2)]
    return Training(step, (first, second, optimizer), batches)
