"""Programs of TensorFlow's guides: mechanisms of its own, with small networks."""

from functools import cache
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from programs.coverage.registry import program
from programs.coverage.tensorflow_training import (
    DEVICES,
    Training,
    cross_entropy,
    fitted,
    images,
    integers,
    normal,
    taped,
)

v1 = tf.compat.v1


def network() -> keras.Sequential:
    """Of images of 12 x 12, with BatchNorm and dropout: logits of ten classes."""
    return keras.Sequential(
        [
            keras.Input((12, 12, 1)),
            layers.Conv2D(8, 3, use_bias=False),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.MaxPooling2D(2),
            layers.Flatten(),
            layers.Dropout(0.2),
            layers.Dense(10, dtype="float32"),
        ]
    )


def batches() -> list[Any]:
    return images(4, 12, 12, 1)


def _own_loop(**options: Any) -> Training:
    model = network()
    loss = lambda batch: cross_entropy()(batch[1], model(batch[0], training=True))  # noqa: E731
    return taped(loss, model, keras.optimizers.Adam(1e-3), batches(), **options)


@program("guides", "training loop of its own")
def loop() -> Training:
    return _own_loop()


@program("guides", "training loop of its own, jit_compile")
def compiled() -> Training:
    return _own_loop(jit_compile=True)


@program("guides", "fit, run_eagerly")
def eager() -> Training:
    return fitted(network(), "adam", cross_entropy(), batches(), run_eagerly=True)


@program("guides", "fit, steps_per_execution, callbacks")
def steps() -> keras.Model:
    model = network()
    model.compile("adam", cross_entropy(), metrics=["accuracy"], steps_per_execution=2, jit_compile=True)
    (x, y), (other, labels) = batches()
    rates = keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.9)
    given = np.concatenate([x, other, x]), np.concatenate([y, labels, y])
    model.fit(*given, batch_size=4, epochs=2, verbose=0, validation_split=0.25, callbacks=[rates])
    return model


def _reduced(policy: str, optimizer: Any) -> Training:
    keras.config.set_dtype_policy(policy)
    return fitted(network(), optimizer, cross_entropy(), batches())


@program("guides", "mixed precision, bfloat16")
def mixed_bfloat16() -> Training:
    return _reduced("mixed_bfloat16", keras.optimizers.AdamW(1e-3))


@program("guides", "mixed precision, float16")
def mixed_float16() -> Training:
    return _reduced("mixed_float16", keras.optimizers.Adam(1e-3))


@program("guides", "bfloat16 alone")
def bfloat16() -> Training:
    return _reduced("bfloat16", keras.optimizers.SGD(1e-2, momentum=0.9))


@program("guides", "float64")
def float64() -> Training:
    keras.config.set_floatx("float64")
    return _reduced("float64", keras.optimizers.Adam(1e-3))


@program("guides", "datasets")
def datasets() -> keras.Model:
    """Images that are changed by parallel threads, shuffled, batched ahead."""
    x, y = (np.concatenate(each) for each in zip(*batches(), strict=True))

    def changed(image: Any, label: Any) -> Any:
        image = tf.image.stateless_random_flip_left_right(image, [label, 3])
        image = tf.image.stateless_random_brightness(image, 0.2, [label, 4])
        return tf.image.per_image_standardization(tf.tanh(image)), label

    data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(8, seed=1)
    data = data.map(changed, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True).cache().repeat(5)
    model = network()
    model.compile("adam", cross_entropy())
    model.fit(data.batch(8).prefetch(2), verbose=0)
    return model


@cache
def mirrored() -> tf.distribute.Strategy:
    """One for the process: those of the same devices get in one another's way."""
    return tf.distribute.MirroredStrategy(DEVICES)


@program("guides", "two replicas")
def replicas() -> keras.Model:
    with mirrored().scope():
        model = network()
        model.compile(keras.optimizers.SGD(1e-2, momentum=0.9), cross_entropy())
    for _ in range(2):
        for x, y in batches():
            model.fit(x, y, batch_size=4, verbose=0)
    return model


@program("guides", "two replicas, a training loop of its own")
def replicas_loop() -> Training:
    strategy = mirrored()
    with strategy.scope():
        weights = tf.Variable(normal(8, 3))
        mean = tf.Variable(
            0.0, aggregation=tf.VariableAggregation.MEAN, synchronization=tf.VariableSynchronization.ON_READ
        )

    def each(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.softplus(x @ weights))
        gradient = tape.gradient(loss, weights)
        gradient = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, gradient)
        weights.assign_sub(0.1 * gradient)
        mean.assign(loss)
        return loss

    @tf.function
    def step(x: Any) -> Any:
        given = strategy.experimental_distribute_values_from_function(lambda c: x[c.replica_id_in_sync_group])
        losses = strategy.run(each, args=(given,))
        return strategy.reduce(tf.distribute.ReduceOp.MEAN, losses, axis=None)

    return Training(step, (weights.values, mean.values), [normal(2, 4, 8, key=key) for key in range(2)])


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
