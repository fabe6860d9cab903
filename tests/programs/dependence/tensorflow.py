"""What results of TensorFlow's operations depend on, under portable numerics. Prints JSON, as scopes.report has it."""

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

import repro.portable.modes.tensorflow as portable
from programs.dependence.scopes import (
    CALL,
    ITS_COLUMN,
    ITS_ROW,
    ITS_SAMPLE,
    ITSELF,
    NEAR,
    ROW_SO_FAR,
    ROWS_SO_FAR,
    Case,
    Cases,
    constant,
    report,
)

Tensor = Any


def flat(x: Tensor) -> Tensor:
    """Rows of all samples."""
    return tf.reshape(x, [-1, x.shape[-1]])


def sample_of(x: Tensor) -> np.ndarray:
    """The sample of each row."""
    return np.arange(x.shape[0]).repeat(x.shape[1])


def causal(x: Tensor) -> Tensor:
    return tf.nn.conv1d(tf.pad(x, [[0, 0], [2, 0], [0, 0]]), constant(9, 3, 6, 6), 1, "VALID")


def convolved_2d(x: Tensor) -> Tensor:
    return tf.nn.conv2d(x[..., None], constant(10, 3, 3, 1, 1), 1, "SAME")[..., 0]


def weight_gradient(x: Tensor) -> Tensor:
    weight = tf.constant(constant(1, x.shape[-1], 7))
    with tf.GradientTape() as tape:
        tape.watch(weight)
        y = tf.reduce_sum(flat(x) @ weight)
    return tape.gradient(y, weight)[None]


def unsorted(x: Tensor) -> Tensor:
    return tf.math.unsorted_segment_sum(flat(x), sample_of(x), x.shape[0])[:, None]


def bags(reduce: Callable[..., Any]) -> Callable[[Tensor], Tensor]:
    return lambda x: reduce(flat(x), np.arange(x.shape[0] * x.shape[1]), sample_of(x))[:, None]


def scattered(x: Tensor) -> Tensor:
    return tf.scatter_nd(sample_of(x)[:, None], flat(x), [x.shape[0], x.shape[2]])[:, None]


def scatter_added(x: Tensor) -> Tensor:
    zeros = tf.zeros([x.shape[0], x.shape[2]])
    return tf.tensor_scatter_nd_add(zeros, sample_of(x)[:, None], flat(x))[:, None]


def normalized(x: Tensor) -> Tensor:
    mean, variance = tf.nn.moments(x, -1, keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + 1e-3)


def both(z: Tensor) -> Tensor:
    return tf.concat([tf.math.real(z), tf.math.imag(z)], -1)


def square(x: Tensor) -> Tensor:
    """Matrices of positive eigenvalues, of samples without NaN."""
    x = tf.clip_by_value(tf.where(tf.math.is_nan(x), 0.0, x), -4, 4)
    return tf.matmul(x, x, transpose_b=True) + tf.eye(x.shape[1])


CASES: Cases = {
    "sums, products, quotients of elements": Case(lambda x: (x + 0.3) * x / 1.7, ITSELF),
    "functions: exp, sin, sqrt, erf": Case(
        lambda x: tf.exp(x) + tf.sin(x) * tf.sqrt(tf.abs(x)) + tf.math.erf(x), ITSELF
    ),
    "activations: gelu, silu, relu": Case(lambda x: tf.nn.gelu(x) + tf.nn.silu(x) + tf.nn.relu(x), ITSELF),
    "sum, mean of a row": Case(lambda x: tf.reduce_sum(x, -1, True) + tf.reduce_mean(x, -1, True), ITS_ROW),
    "sum, mean of a column": Case(lambda x: tf.reduce_sum(x, 1, True) + tf.reduce_mean(x, 1, True), ITS_COLUMN),
    "prod": Case(lambda x: tf.reduce_prod(x, -1, True), ITS_ROW),
    "logsumexp": Case(lambda x: tf.reduce_logsumexp(x, -1, True), ITS_ROW),
    "cumsum": Case(lambda x: tf.cumsum(x, -1), ROW_SO_FAR),
    "matmul, bmm, einsum, the first factor": Case(lambda x: x @ constant(4, x.shape[-1], 7), ITS_ROW),
    "matmul, bmm, einsum, the second factor": Case(lambda x: constant(5, 7, x.shape[1]) @ x, ITS_COLUMN),
    "gradients of weights and biases": Case(weight_gradient, CALL, gradient=False),
    "conv1d": Case(lambda x: tf.nn.conv1d(x, constant(9, 3, 6, 6), 1, "SAME"), NEAR),
    "conv1d, causal": Case(causal, ROWS_SO_FAR),
    "conv2d": Case(convolved_2d, NEAR),
    "max_pool2d": Case(lambda x: tf.nn.max_pool2d(x[..., None], 3, 1, "SAME")[..., 0], NEAR),
    "avg_pool2d": Case(lambda x: tf.nn.avg_pool2d(x[..., None], 3, 1, "SAME")[..., 0], NEAR),
    "layer_norm, rms_norm": Case(normalized, ITS_ROW),
    "softmax, log_softmax": Case(lambda x: tf.nn.softmax(x) + tf.nn.log_softmax(x), ITS_ROW),
    "index_add": Case(unsorted, ITS_COLUMN),
    "scatter_nd": Case(scattered, ITS_COLUMN),
    "tensor_scatter_nd_add": Case(scatter_added, ITS_COLUMN),
    "embedding_bag, `sum`": Case(bags(tf.sparse.segment_sum), ITS_COLUMN),
    "embedding_bag, `mean`": Case(bags(tf.sparse.segment_mean), ITS_COLUMN),
    "sort, topk, median": Case(lambda x: tf.sort(x) + tf.math.top_k(x, 1)[0], ITS_ROW),
    "fft": Case(lambda x: both(tf.signal.rfft(x)), ITS_ROW, any_shape=False),
    "solve, inv, det": Case(lambda x: tf.linalg.solve(square(x), x), ITS_SAMPLE),
}


def forward(function: Callable[[Any], Any], x: np.ndarray) -> np.ndarray:
    return function(tf.constant(x)).numpy()


def backward(function: Callable[[Any], Any], x: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    given = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(given)
        y = function(given)
    result = tape.gradient(y, given, tf.constant(gradient))
    return tf.convert_to_tensor(result).numpy()


if __name__ == "__main__":
    portable.enable()
    names = sys.argv[1:] or list(CASES)
    print(json.dumps(report({name: CASES[name] for name in names}, forward, backward)))
