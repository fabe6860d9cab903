"""Small trainings with Keras, one per scenario.

All run in one process, and each prints the hashes of its last weights.
"""

import sys
from collections.abc import Callable

import keras
import numpy as np
from hashes import report

COUNT = 10
X = np.random.RandomState(0).randn(16 * COUNT, 4).astype("float32")
Y = X.sum(1, keepdims=True)


def network(begin: bool = True) -> keras.Model:
    """The network; without a beginning its weights are made while the first step is traced."""
    keras.utils.set_random_seed(0)
    layers = [
        keras.layers.Dense(8),
        keras.layers.BatchNormalization(),
        keras.layers.Dropout(0.3),
        keras.layers.Dense(1),
    ]
    return keras.Sequential([keras.Input((4,)), *layers] if begin else layers)


def report_weights(scenario: str, model: keras.Model, buffers: bool = True, count: int = COUNT) -> None:
    variables = model.weights if buffers else model.trainable_variables
    report(scenario, count, {v.path: keras.ops.convert_to_numpy(v) for v in variables})


def fit(scenario: str, buffers: bool = True, begin: bool = True, **options: object) -> None:
    model = network(begin)
    model.compile(keras.optimizers.Adam(), "mse", **options)
    model.fit(X, Y, batch_size=16, epochs=1, verbose=0)
    report_weights(scenario, model, buffers)


def restored(scenario: str) -> None:
    """A callback puts weights in when the epoch begins, as one that resumes does; those are reported."""
    model = network()
    model.compile(keras.optimizers.Adam(), "mse")
    held = [keras.ops.convert_to_numpy(variable) / 2 for variable in model.weights]
    restore = keras.callbacks.LambdaCallback(on_epoch_begin=lambda *_: model.set_weights(held))
    model.fit(X, Y, batch_size=16, epochs=1, verbose=0, callbacks=[restore])
    trained = {variable.path for variable in model.trainable_variables}
    report(scenario, COUNT, {v.path: array for v, array in zip(model.weights, held, strict=True) if v.path in trained})


def clipped(scenario: str) -> None:
    """A callback clips weights before each batch; they are what is reported."""
    model, seen = network(), {}
    model.compile(keras.optimizers.Adam(), "mse", jit_compile=False)
    kernel = model.layers[0].kernel

    def clip(batch: int, logs: object = None) -> None:
        kernel.assign(np.clip(keras.ops.convert_to_numpy(kernel), -0.1, 0.1))
        seen[str(batch)] = keras.ops.convert_to_numpy(kernel)

    model.fit(X, Y, batch_size=16, verbose=0, callbacks=[keras.callbacks.LambdaCallback(on_train_batch_begin=clip)])
    report(scenario, COUNT, seen)


def scaled(scenario: str, **options: object) -> None:
    """Trains with Keras' optimizer for mixed precision; its scale is so large that it skips the first steps."""
    model = network()
    inner = keras.optimizers.SGD(0.1, momentum=0.9)
    model.compile(keras.optimizers.LossScaleOptimizer(inner, initial_scale=2.0**127), "mse", **options)
    model.fit(X, Y, batch_size=16, epochs=1, verbose=0)
    report_weights(scenario, model, keras.backend.backend() != "jax", int(keras.ops.convert_to_numpy(inner.iterations)))


def distributed(scenario: str) -> None:
    """Two replicas, on two devices that are this CPU."""
    import tensorflow

    halves = [tensorflow.config.LogicalDeviceConfiguration()] * 2
    tensorflow.config.set_logical_device_configuration(tensorflow.config.list_physical_devices("CPU")[0], halves)
    with tensorflow.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
        model = network()
        model.compile(keras.optimizers.Adam(), "mse")
    model.fit(X, Y, batch_size=16, epochs=1, verbose=0)
    report_weights(scenario, model)


def own(scenario: str, around: Callable[[Callable], Callable], batches: bool = False) -> None:
    """A loop of one's own, in TensorFlow; its batches may come from tf.data, of which an evaluation takes some, too."""
    import tensorflow

    model, optimizer = network(), keras.optimizers.SGD(0.1, momentum=0.9)

    @around
    def step(x: tensorflow.Tensor, y: tensorflow.Tensor) -> None:
        with tensorflow.GradientTape() as tape:
            loss = tensorflow.reduce_mean(tensorflow.square(model(x, training=True) - y))
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)

    data = tensorflow.data.Dataset.from_tensor_slices((X, Y)).batch(16)
    cut = [(X[at : at + 16], Y[at : at + 16]) for at in range(0, 16 * COUNT, 16)]
    for place, (x, y) in enumerate(data if batches else cut):
        step(x, y)
        if batches and place == 1:
            assert sum(len(x) for x, _ in data.take(3)) == 48
    report_weights(scenario, model, buffers=False)


def own_step(scenario: str) -> None:
    """A train_step of one's own in `fit`, in TensorFlow."""
    import tensorflow

    class Network(keras.Sequential):
        def train_step(self, data: tuple[tensorflow.Tensor, tensorflow.Tensor]) -> dict[str, tensorflow.Tensor]:
            x, y = data
            with tensorflow.GradientTape() as tape:
                loss = tensorflow.reduce_mean(tensorflow.square(self(x, training=True) - y))
            self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
            return {"loss": loss}

    model = Network(network().layers)
    model.compile(keras.optimizers.Adam(), jit_compile=False)
    stopping = keras.callbacks.EarlyStopping("loss", patience=3)
    model.fit(X, Y, batch_size=16, epochs=1, verbose=0, shuffle=False, callbacks=[stopping])
    report_weights(scenario, model)


def compiled(jit: bool) -> Callable[[Callable], Callable]:
    import tensorflow

    return lambda step: tensorflow.function(step, jit_compile=jit)


SCENARIOS: dict[str, Callable[[str], None]] = {
    "fit": lambda name: fit(name, jit_compile=False),
    "fit, made late": lambda name: fit(name, begin=False, jit_compile=False),
    "fit, 5 at a time": lambda name: fit(name, jit_compile=False, steps_per_execution=5),
    "fit, eager": lambda name: fit(name, run_eagerly=True),
    "fit, XLA": lambda name: fit(name, jit_compile=True),
    "own, eager": lambda name: own(name, lambda step: step),
    "fit, own step": own_step,
    "own, graph": lambda name: own(name, compiled(False)),
    "own, tf.data": lambda name: own(name, lambda step: step, batches=True),
    "fit, XLA, 5 at a time": lambda name: fit(name, jit_compile=True, steps_per_execution=5),
    "own, XLA": lambda name: own(name, compiled(True)),
    "restored": restored,
    "clipped": clipped,
    "scaled": lambda name: scaled(name, jit_compile=False),
    "scaled, XLA": lambda name: scaled(name, jit_compile=True),
    "scaled, as it comes": scaled,
    "distributed": distributed,
    "fit, as it comes": lambda name: fit(name, buffers=keras.backend.backend() != "jax"),
}

if __name__ == "__main__":
    for scenario in sys.argv[1:]:
        SCENARIOS[scenario](scenario)
