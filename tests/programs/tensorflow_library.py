"""Computes what library_cases.py has with TensorFlow's library: python tensorflow_library.py FILE [MODE].

What it writes is as in jax_library.py. With a mode only the functions, in it, which take long to compile.
"""

import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from programs import library_cases as cases
from repro.errors import UsageError
from repro.portable.library.tensorflow import functional, layers, optim

MODES: dict[str, dict[str, bool]] = {
    "eager": {"run_eagerly": True},
    "graph": {"jit_compile": False},
    "compiled": {"jit_compile": True},
}


def wrapped(mode: str, function: Callable[..., Any]) -> Callable[..., Any]:
    return function if mode == "eager" else tf.function(function, **MODES[mode])


def results(arrays: list[tf.Tensor]) -> dict[str, dict[str, tf.Tensor]]:
    """Of each case what a function returns, and the gradients of its first result for some gradient of it.

    Arrays are given, as what is constant is computed when a graph is made.
    """
    result, rest = {}, iter(arrays)
    for name, (function, arguments, options) in cases.CASES.items():
        given = [next(rest) if isinstance(each, np.ndarray) else each for each in arguments]
        leaves = [each for each in given if tf.is_tensor(each) and each.dtype == tf.float32]
        with tf.GradientTape() as tape:
            tape.watch(leaves)
            every = getattr(functional, function)(*given, **options)
            every = every if isinstance(every, tuple) else (every,)
        gradient = tf.constant(cases.normal(*every[0].shape, seed=9))
        gradients = tape.gradient(every[0], leaves, gradient, unconnected_gradients="zero")
        result[name] = {str(i): each for i, each in enumerate((*every, *gradients))}
    return result


def outside() -> dict[str, dict[str, Any]]:
    """Of indices out of range the loss and the gradient of its weight, in a graph and compiled.

    Not of rows in a graph, as TensorFlow itself refuses those on a CPU.
    """
    results: dict[str, dict[str, Any]] = {}
    for name, (loss, weight, size) in cases.INDEXED.items():

        def call(weight: tf.Tensor, index: tf.Tensor, loss: Callable[..., Any] = loss) -> tuple[tf.Tensor, tf.Tensor]:
            with tf.GradientTape() as tape:
                tape.watch(weight)
                value = loss(functional, weight, index)
            return value, tape.gradient(value, weight)

        for mode in ("graph", "compiled") if name == "labels" else ("compiled",):
            function = wrapped(mode, call)
            for where, index in cases.outside(size).items():
                values = function(tf.constant(weight), tf.constant(index))
                results[f"{name} {where}, {mode}"] = dict(zip(("loss", "gradient"), values, strict=True))
    return results


# --- optimizers -------------------------------------------------------------------------------------------------------

OPTIMIZERS = {"sgd": optim.SGD, "adam": optim.Adam, "adamw": optim.AdamW, "adadelta": optim.Adadelta}
SLOTS = {"sgd": (), "adadelta": ("squares", "updates")}  # of others `first`, `second`


def optimized(mode: str) -> dict[str, dict[str, Any]]:
    """Weights and slots after a few updates."""
    results = {}
    for name, (arguments, _, own) in cases.OPTIMIZERS.items():
        weights = {each: keras.Variable(value, name=each) for each, value in cases.WEIGHTS.items()}
        optimizer = OPTIMIZERS[name](**arguments, **own)
        optimizer.build(list(weights.values()))
        update = wrapped(mode, optimizer.apply)
        for gradients in cases.GRADIENTS:
            update([tf.constant(each) for each in gradients.values()])
        results[name] = state(name, weights, optimizer)
    return results


def state(name: str, weights: dict[str, Any], optimizer: optim.Portable) -> dict[str, Any]:
    """By the names that JAX's library has."""
    results = {f"weights/{each}": weight for each, weight in weights.items()}
    for slot, variables in zip(SLOTS.get(name, ("first", "second")), optimizer.slots(), strict=True):
        results |= {f"slots/{slot}/{each}": value for each, value in zip(weights, variables, strict=True)}
    return results | {"slots/count": tf.cast(optimizer.iterations, tf.int32)}


# --- networks ---------------------------------------------------------------------------------------------------------

KERAS_NAMES = {"scale": "gamma", "bias": "beta"}


def cnn() -> keras.Model:
    model = keras.Sequential(
        [
            keras.Input(cases.BATCHES[0][0].shape[1:]),
            layers.Conv2D(8, 3, strides=2, padding="same", name="conv"),
            layers.BatchNormalization(momentum=0.9, epsilon=1e-5, name="norm"),
            layers.Activation("relu"),
            layers.MaxPooling2D(2),
            layers.GlobalAveragePooling2D(),
            layers.Dropout(**cases.DROPOUT),
            layers.Dense(10, name="dense"),
        ]
    )
    for layer, weights in cases.CNN_WEIGHTS.items():
        for name, value in weights.items():
            variable(model, layer, name).assign(value)
    return model


def variable(model: keras.Model, layer: str, name: str) -> Any:
    return getattr(model.get_layer(layer), KERAS_NAMES[name] if layer == "norm" else name)


def cnn_trained(mode: str, resumed: bool) -> dict[str, Any]:
    model = cnn()
    optimizer = optim.SGD(0.1, **cases.CNN_SGD)
    model.compile(optimizer, layers.SparseCategoricalCrossentropy(from_logits=True), **MODES[mode])
    for step, (images, labels) in enumerate(cases.BATCHES):
        if resumed and step == cases.RESUMED:
            with tempfile.TemporaryDirectory() as folder:
                model.save(Path(folder) / "model.keras")
                model = keras.models.load_model(Path(folder) / "model.keras")
        model.train_on_batch(images, labels)
    norm = model.get_layer("norm")
    results = {"batch_stats/norm/mean": norm.moving_mean, "batch_stats/norm/var": norm.moving_variance}
    slots = {id(weight): slot for weight, slot in zip(model.trainable_weights, model.optimizer.momentums, strict=True)}
    for layer, weights in cases.CNN_WEIGHTS.items():
        for name in weights:
            weight = variable(model, layer, name)
            results |= {f"weights/{layer}/{name}": weight, f"slots/momentum/{layer}/{name}": slots[id(weight)]}
    return results | {"slots/count": tf.cast(model.optimizer.iterations, tf.int32)}


def block_trained(mode: str, resumed: bool) -> dict[str, Any]:
    weights = {name: keras.Variable(value, name=name) for name, value in cases.BLOCK_WEIGHTS.items()}
    every = list(weights.values())

    def made() -> optim.AdamW:
        optimizer = optim.AdamW(1e-2, weight_decay=1e-4, global_clipnorm=cases.LIMIT)
        optimizer.build(every)
        return optimizer

    def step(text: tf.Tensor) -> None:
        with tf.GradientTape() as tape:
            loss = cases.block(functional, tf.reshape, tf.transpose, weights, text)
        optimizer.apply(tape.gradient(loss, [weight.value for weight in every]))

    optimizer = made()
    call = wrapped(mode, step)
    for count, text in enumerate(cases.TEXTS):
        if resumed and count == cases.RESUMED:
            stored = [value.numpy() for value in optimizer.variables]
            optimizer = made()
            for slot, value in zip(optimizer.variables, stored, strict=True):
                slot.assign(value)
            call = wrapped(mode, step)
        call(tf.constant(text))
    return state("adamw", weights, optimizer)


def networks(mode: str, resumed: bool = False) -> dict[str, dict[str, Any]]:
    return {"cnn": cnn_trained(mode, resumed), "block": block_trained(mode, resumed)}


# --- what is refused --------------------------------------------------------------------------------------------------


def refused() -> dict[str, str]:
    f, x, images = functional, cases.X, cases.IMAGES
    signature = [tf.TensorSpec((None, 6), tf.float32)]
    model = cnn()
    model.compile(optim.Adam(), layers.SparseCategoricalCrossentropy(from_logits=True))
    pictures, labels = cases.BATCHES[0]
    calls: dict[str, Callable[[], Any]] = {
        "float16": lambda: f.relu(x.astype(np.float16)),
        "bfloat16": lambda: f.linear(x, tf.ones((6, 2), tf.bfloat16)),
        "float64": lambda: f.layer_norm(x.astype(np.float64)),
        "empty": lambda: f.relu(x[:0]),
        "unknown size": lambda: tf.function(f.relu, input_signature=signature).get_concrete_function(),
        "unknown size in fit": lambda: model.fit(pictures, labels, batch_size=4, verbose=0),
        "shapes": lambda: f.linear(x, cases.normal(5, 2)),
        "kernel": lambda: f.conv2d(images, cases.normal(9, 3, 4, 1)),
        "padding": lambda: f.max_pool2d(images, 3, padding=2),
        "index": lambda: f.embedding(np.array([5]), cases.normal(5, 3)),
        "labels": lambda: f.cross_entropy(cases.LOGITS, cases.LABELS - 1),
        "mask": lambda: f.scaled_dot_product_attention(cases.QUERY, cases.KEY, cases.VALUE, np.ones((5, 5))),
        "rate": lambda: f.dropout(x, 1.0, 0, 0),
        "one sample": lambda: f.batch_norm(cases.normal(1, 4), cases.CHANNELS, cases.CHANNELS, training=True),
        "layer's dtype": lambda: layers.Dense(3, dtype="mixed_bfloat16"),
        "layer's axes": lambda: layers.LayerNormalization(axis=(1, 2)),
        "regularizer": lambda: layers.Dense(3, kernel_regularizer="l2"),
        "activation": lambda: layers.Dense(3, activation="elu"),
        "probabilities": lambda: layers.SparseCategoricalCrossentropy(),
        "sample weights": lambda: model.train_on_batch(pictures, labels, sample_weight=np.ones(6)),
        "averages": lambda: optim.SGD(use_ema=True),
        "one name": lambda: one_name().apply([tf.ones(2), tf.ones(2)]),
        "labels of 0.7": lambda: model.train_on_batch(pictures, labels + np.float32(0.7)),
        "copies": lambda: f.fan_out(x, 0),
        "limit": lambda: f.clip_by_global_norm({"w": x}, float("nan")),
    }
    calls |= options()
    calls |= {f"second derivative of {name}": partial(second_derivative, name) for name in cases.CASES}
    calls |= {f"second derivative, {name}": call for name, call in second_derivatives().items()}
    return {name: line(call) for name, call in calls.items()} | first_derivatives()


def options() -> dict[str, Callable[[], Any]]:
    """Options of optimizers and layers that have no portable form, given first or set since."""
    decay = keras.optimizers.schedules.CosineDecay(0.1, 10)
    fixed = keras.optimizers.schedules.PiecewiseConstantDecay([1], [0.1, 0.01])
    nan = float("nan")
    return {
        "rate of NaN": lambda: optim.SGD(nan),
        "rate below 0": lambda: optim.Adam(-1.0),
        "rate since": lambda: setattr(optim.SGD(0.1), "learning_rate", -1.0),
        "momentum": lambda: optim.SGD(0.1, momentum=nan),
        "beta of NaN": lambda: optim.Adam(beta_2=nan),
        "beta of 1": lambda: optim.AdamW(beta_2=1.0),
        "beta below 0": lambda: optim.Adam(beta_1=-1.0),
        "decay": lambda: optim.AdamW(weight_decay=-1.0),
        "rho": lambda: optim.Adadelta(rho=1.5),
        "schedule": lambda: optim.SGD(decay),
        "schedule since": lambda: updated(learning_rate=decay),
        "clipping since": lambda: updated(clipnorm=1.0),
        "beta since": lambda: updated(beta_2=nan),
        "constraint of a weight": lambda: updated(keras.constraints.NonNeg()),
        "portable schedule": lambda: updated(learning_rate=fixed),
        "rank since": lambda: called(lambda layer: layer.enable_lora(2)),
        "regularizer since": lambda: called(
            lambda layer: setattr(layer, "kernel_regularizer", keras.regularizers.L2())
        ),
        "regularizer of a weight": lambda: called(
            lambda layer: setattr(layer.kernel, "regularizer", keras.regularizers.L2())
        ),
        "quantized": lambda: layers.Dense(3, dtype="int8_from_float32"),
    }


def updated(constraint: Any = None, **since: Any) -> None:
    """A step of Adam with options that are set after it was made."""
    optimizer = optim.Adam(0.1)
    optimizer.build([keras.Variable(np.ones(2, np.float32))])
    for option, value in since.items():
        setattr(optimizer, option, value)
    for variable in optimizer._trainable_variables:
        variable.constraint = constraint
    optimizer.apply([tf.ones(2)])


def called(change: Callable[[keras.layers.Layer], Any]) -> None:
    """A layer that is changed after it was called."""
    layer = layers.Dense(3)
    layer(cases.X)
    change(layer)
    layer(cases.X)


def penalty(loss: Callable[..., tf.Tensor], *arrays: tf.Tensor) -> tf.Tensor:
    """The squares of all gradients of a loss."""
    with tf.GradientTape() as tape:
        tape.watch(arrays)
        value = loss(*arrays)
    gradients = tape.gradient(value, arrays)
    return tf.add_n([tf.reduce_sum(each**2) for each in gradients if each is not None])


def penalized(loss: Callable[..., tf.Tensor], *arrays: tf.Tensor) -> tf.Tensor:
    """Their gradient by the first array."""
    with tf.GradientTape() as tape:
        tape.watch(arrays[0])
        value = penalty(loss, *arrays)
    return tape.gradient(value, arrays[0])


def second_derivative(name: str) -> tf.Tensor:
    function, arguments, others = cases.CASES[name]
    floats = [i for i, each in enumerate(arguments) if getattr(each, "dtype", None) == np.float32]

    def loss(*leaves: tf.Tensor) -> tf.Tensor:
        given = [leaves[floats.index(i)] if i in floats else each for i, each in enumerate(arguments)]
        every = getattr(functional, function)(*given, **others)
        return tf.reduce_sum((every[0] if isinstance(every, tuple) else every) ** 2)

    return penalized(loss, *(tf.constant(arguments[i]) for i in floats))


def loss_of(weight: tf.Tensor) -> tf.Tensor:
    return functional.softmax(functional.linear(cases.X[0], weight))[0, 0]


WEIGHT = tf.constant(cases.normal(6, 6))


def second_derivatives() -> dict[str, Callable[[], Any]]:
    """Of one loss, in all the ways of TensorFlow."""
    gradient = tf.function(partial(penalty, loss_of))

    def clipped(weight: tf.Tensor) -> tf.Tensor:
        return functional.clip_by_global_norm({"w": weight}, 0.1)[0]["w"]

    def forward() -> None:
        with tf.autodiff.ForwardAccumulator(WEIGHT, WEIGHT):
            loss_of(WEIGHT)

    return {
        "graph": lambda: tf.function(penalized)(loss_of, WEIGHT),
        "compiled": lambda: tf.function(penalized, jit_compile=True)(loss_of, WEIGHT),
        "of a function": lambda: gradient_of(gradient, WEIGHT),
        "forward mode": forward,
        "copies": lambda: penalized(lambda weight: sum(functional.fan_out(weight, 2)) ** 2, WEIGHT),
        "clipped": lambda: penalized(clipped, WEIGHT),
    }


def gradient_of(function: Callable[..., tf.Tensor], x: tf.Tensor) -> tf.Tensor:
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = function(x)
    return tape.gradient(value, x)


def first_derivatives() -> dict[str, str]:
    """The refusals, of which there are none, where second derivatives are possible but nobody computes them.

    TensorFlow makes those of a tf.function beforehand, in some of these cases.
    """
    function = tf.function(loss_of)
    both = tf.function(lambda weight: (loss_of(weight), penalty(loss_of, weight)))

    def two_tapes() -> None:
        with tf.GradientTape() as outer:
            outer.watch(WEIGHT)
            gradient_of(function, WEIGHT)
            value = function(WEIGHT)
        outer.gradient(value, WEIGHT)

    def in_the_tape() -> None:
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(WEIGHT)
            tape.gradient(function(WEIGHT), WEIGHT)

    return {
        "two tapes": line(two_tapes),
        "in the tape": line(in_the_tape),
        "loss and gradient": line(lambda: gradient_of(lambda weight: both(weight)[0], WEIGHT)),
        "gradient as a constant": line(
            lambda: gradient_of(lambda x: loss_of(x - penalty(loss_of, tf.stop_gradient(x))), WEIGHT)
        ),
    }


def one_name() -> optim.SGD:
    """Of two weights, whose gradients have no order then."""
    optimizer = optim.SGD(global_clipnorm=1.0)
    optimizer.build([keras.Variable(np.ones(2, np.float32), name="w") for _ in range(2)])
    return optimizer


def line(call: Callable[[], Any]) -> str:
    """The line of a refusal; Keras and TensorFlow add where it was, in lines of their own."""
    try:
        call()
    except (UsageError, tf.errors.InvalidArgumentError) as error:
        (result,) = (line for line in str(error).splitlines() if "portable numerics" in line)
        result = result.strip().removeprefix("UsageError: ").removeprefix("assertion failed: [").removesuffix("]")
        return result.replace("\033[1m", "").replace("\033[0m", "")
    return ""


def main(path: str, *modes: str) -> None:
    arguments = [each for _, several, _ in cases.CASES.values() for each in several]
    arrays = [tf.constant(each) for each in arguments if isinstance(each, np.ndarray)]
    result = {mode: wrapped(mode, results)(arrays) for mode in modes or ["eager"]}
    if not modes:
        for mode in MODES:
            result[mode] = result.get(mode, {}) | networks(mode) | optimized(mode)
        result["outside"] = outside()
        result["resumed"] = networks("eager", resumed=True)
    cases.save(path, result, {} if modes else refused())


if __name__ == "__main__":
    main(*sys.argv[1:])
