"""Programs of TensorFlow's guides: variables and derivatives without Keras."""

from typing import Any

import numpy as np
import tensorflow as tf

from evidence.coverage.registry import program
from evidence.coverage.tensorflow_training import Training, integers, normal

v1 = tf.compat.v1


class Dense(tf.Module):
    """A layer with no help of Keras."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weights, self.bias = tf.Variable(normal(inputs, outputs) * 0.1), tf.Variable(tf.zeros(outputs))

    def __call__(self, x: Any) -> Any:
        return x @ self.weights + self.bias


class Perceptron(tf.Module):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = [Dense(6, 8), Dense(8, 1)]

    def __call__(self, x: Any) -> Any:
        return self.layers[1](tf.nn.relu(self.layers[0](x)))


@program("guides", "tf.Module from scratch")
def scratch() -> Training:
    """With moments of its own."""
    model = Perceptron()
    moments = [tf.Variable(tf.zeros_like(each)) for each in model.trainable_variables]

    @tf.function
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - tf.sin(x[:, :1])) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        for number, variable in enumerate(model.trainable_variables):
            moments[number].assign(0.9 * moments[number] + gradients[number])
            variable.assign_sub(0.1 * moments[number])
        return loss

    return Training(step, (model, moments), [normal(8, 6, key=key) for key in range(2)])


@program("guides", "derivatives of derivatives")
def derivatives() -> Training:
    """A penalty of gradients, a Jacobian, Newton's step by products with the Hessian, forward mode."""
    x = tf.Variable(normal(5))
    matrix = tf.constant(normal(5, 5, key=3) * 0.3)

    def value(x: Any) -> Any:
        return tf.reduce_sum(tf.cos(tf.linalg.matvec(matrix, x)) + 0.1 * x**4)

    @tf.function
    def step(direction: Any) -> Any:
        with tf.GradientTape(persistent=True) as outer:
            with tf.GradientTape() as inner:
                y = value(x)
            gradient = inner.gradient(y, x)
            penalty = y + 0.1 * tf.reduce_sum(gradient**2)
        hessian = outer.jacobian(gradient, x)
        with tf.autodiff.ForwardAccumulator(x, direction) as forward:
            along = value(x)
        curved = outer.gradient(gradient, x, output_gradients=direction)
        move = (
            outer.gradient(penalty, x) + forward.jvp(along) * direction + curved + tf.linalg.matvec(hessian, direction)
        )
        x.assign_sub(0.01 * move)
        return penalty

    return Training(step, [x], [normal(5, key=key) for key in range(1, 3)])


@program("guides", "gradients of each example")
def examples() -> Training:
    """By `vectorized_map`, clipped and noisy: as in differential privacy."""
    weights = tf.Variable(normal(6, 3) * 0.1)

    def each(given: Any) -> Any:
        x, label = given
        with tf.GradientTape() as tape:
            logits = tf.linalg.matvec(weights, tf.tanh(x), transpose_a=True)
            loss = tf.nn.sparse_softmax_cross_entropy_with_logits(label, logits)
        return loss, tf.clip_by_norm(tape.gradient(loss, weights), 0.1)

    @tf.function
    def step(batch: Any) -> Any:
        losses, gradients = tf.vectorized_map(each, batch)
        noise = tf.random.stateless_normal([6, 3], [1, 2], stddev=0.01)
        weights.assign_sub(tf.reduce_mean(gradients, 0) + noise)
        return tf.reduce_mean(losses)

    batches = [tuple(map(tf.constant, (normal(5, 6, key=key), integers(3, 5, key=key)))) for key in range(2)]
    return Training(step, [weights], batches)


@program("guides", "a gradient of its own, loops, branches")
def control() -> Training:
    weights = tf.Variable(normal(4, 4) * 0.3)

    @tf.custom_gradient
    def clipped(x: Any) -> Any:
        return x, lambda upstream: tf.clip_by_norm(upstream, 0.5)

    @tf.function
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            for _ in tf.range(3):
                x = tf.tanh(clipped(x) @ weights) if tf.reduce_sum(x) > 0 else tf.nn.softplus(x @ weights)
            outputs = tf.TensorArray(tf.float32, 2).write(0, x).write(1, x * x).stack()
            loss = tf.reduce_mean(tf.recompute_grad(tf.exp)(-outputs))
        weights.assign_sub(0.5 * tape.gradient(loss, weights))
        return loss

    return Training(step, [weights], [normal(3, 4, key=key) for key in range(2)])


@program("guides", "gaussian process")
def process() -> Training:
    """The likelihood of its length and noise, by a factor of the covariance."""
    scales = tf.Variable([0.1, -0.5, -1.0])

    @tf.function
    def step(batch: Any) -> Any:
        x, y = batch
        with tf.GradientTape() as tape:
            amplitude, length, noise = tf.unstack(tf.exp(scales))
            distance = tf.reduce_sum((x[:, None] - x) ** 2, -1)
            covariance = amplitude * tf.exp(-0.5 * distance / length**2) + noise * tf.eye(8)
            lower = tf.linalg.cholesky(covariance)
            solved = tf.linalg.triangular_solve(lower, y[:, None])
            loss = 0.5 * tf.reduce_sum(solved**2) + tf.reduce_sum(tf.math.log(tf.linalg.diag_part(lower)))
        scales.assign_sub(0.05 * tape.gradient(loss, scales))
        return loss

    return Training(step, [scales], [(normal(8, 2, key=key), normal(8, key=key + 2)) for key in range(2)])


@program("guides", "ragged tensors")
def ragged() -> Training:
    """Bags of words of any number."""
    table = tf.Variable(normal(20, 4))
    texts = [tf.ragged.constant([[1, 4, 7], [2], [3, 3, 5, 6]]), tf.ragged.constant([[9], [8, 1], [2, 2, 2]])]

    @tf.function(reduce_retracing=True)
    def step(text: Any) -> Any:
        with tf.GradientTape() as tape:
            rows = tf.ragged.map_flat_values(tf.nn.embedding_lookup, table, text)
            loss = tf.reduce_mean(tf.exp(tf.reduce_mean(rows, axis=1)) + tf.reduce_sum(rows, axis=1) ** 2)
        table.assign_sub(0.1 * tf.convert_to_tensor(tape.gradient(loss, table)))
        return loss

    return Training(step, [table], texts)


@program("guides", "a session of TensorFlow 1")
def session() -> list[np.ndarray]:
    graph = tf.Graph()
    with graph.as_default(), v1.variable_scope("net"):
        x, y = v1.placeholder(tf.float32, (None, 6)), v1.placeholder(tf.float32, (None, 2))
        w = v1.get_variable("w", (6, 2), initializer=v1.glorot_uniform_initializer(seed=1))
        loss = v1.losses.sigmoid_cross_entropy(tf.cast(y > 0, tf.float32), x @ w)
        train = v1.train.AdamOptimizer(1e-2).minimize(loss)
        with v1.Session() as running:
            running.run(v1.global_variables_initializer())
            for key in range(5):
                running.run(train, {x: normal(8, 6, key=key), y: normal(8, 2, key=key)})
            return [running.run(each) for each in v1.global_variables()]
