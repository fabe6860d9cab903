"""Computes what library_cases.py has with TensorFlow's library: python tensorflow_library.py FILE [MODE].

What it writes is as in jax_library.py. With a mode only the functions, in it, which take long to compile.
"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from programs import library_cases as cases
from repro.errors import UsageError
from repro.portable.tensorflow import functional, layers, optim

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
    found, rest = {}, iter(arrays)
    for name, (function, arguments, options) in cases.CASES.items():
        given = [next(rest) if isinstance(each, np.ndarray) else each for each in arguments]
        leaves = [each for each in given if tf.is_tensor(each) and each.dtype == tf.float32]
        with tf.GradientTape() as tape:
            tape.watch(leaves)
            every = getattr(functional, function)(*given, **options)
            every = every if isinstance(every, tuple) else (every,)
        gradient = tf.constant(cases.normal(*every[0].shape, seed=9))
        gradients = tape.gradient(every[0], leaves, gradient, unconnected_gradients="zero")
        found[name] = {str(i): each for i, each in enumerate((*every, *gradients))}
    return found


# --- optimizers -------------------------------------------------------------------------------------------------------

OPTIMIZERS = {"sgd": optim.SGD, "adam": optim.Adam, "adamw": optim.AdamW, "adadelta": optim.Adadelta}
SLOTS = {"sgd": (), "adadelta": ("squares", "updates")}  # of others `first`, `second`


def optimized(mode: str) -> dict[str, dict[str, Any]]:
    """Weights and slots after a few updates."""
    found = {}
    for name, (arguments, _, own) in cases.OPTIMIZERS.items():
        weights = {each: keras.Variable(value, name=each) for each, value in cases.WEIGHTS.items()}
        optimizer = OPTIMIZERS[name](**arguments, **own)
        optimizer.build(list(weights.values()))
        update = wrapped(mode, optimizer.apply)
        for gradients in cases.GRADIENTS:
            update([tf.constant(each) for each in gradients.values()])
        found[name] = state(name, weights, optimizer)
    return found


def state(name: str, weights: dict[str, Any], optimizer: optim.Portable) -> dict[str, Any]:
    """By the names that JAX's library has."""
    found = {f"weights/{each}": weight for each, weight in weights.items()}
    for slot, variables in zip(SLOTS.get(name, ("first", "second")), optimizer.slots(), strict=True):
        found |= {f"slots/{slot}/{each}": value for each, value in zip(weights, variables, strict=True)}
    return found | {"slots/count": tf.cast(optimizer.iterations, tf.int32)}


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
    found = {"batch_stats/norm/mean": norm.moving_mean, "batch_stats/norm/var": norm.moving_variance}
    slots = {id(weight): slot for weight, slot in zip(model.trainable_weights, model.optimizer.momentums, strict=True)}
    for layer, weights in cases.CNN_WEIGHTS.items():
        for name in weights:
            weight = variable(model, layer, name)
            found |= {f"weights/{layer}/{name}": weight, f"slots/momentum/{layer}/{name}": slots[id(weight)]}
    return found | {"slots/count": tf.cast(model.optimizer.iterations, tf.int32)}


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
    }
    return {name: line(call) for name, call in calls.items()}


def one_name() -> optim.SGD:
    """Of two weights, whose gradients have no order then."""
    optimizer = optim.SGD(global_clipnorm=1.0)
    optimizer.build([keras.Variable(np.ones(2, np.float32), name="w") for _ in range(2)])
    return optimizer


def line(call: Callable[[], Any]) -> str:
    """What is refused; Keras adds where in a model it was, in lines of its own."""
    try:
        call()
    except UsageError as error:
        (found,) = (line for line in str(error).splitlines() if "portable numerics" in line)
        return found.strip().removeprefix("UsageError: ").replace("\033[1m", "").replace("\033[0m", "")
    return ""


def main(path: str, *modes: str) -> None:
    arguments = [each for _, several, _ in cases.CASES.values() for each in several]
    arrays = [tf.constant(each) for each in arguments if isinstance(each, np.ndarray)]
    found = {mode: wrapped(mode, results)(arrays) for mode in modes or ["eager"]}
    if not modes:
        for mode in MODES:
            found[mode] = found.get(mode, {}) | networks(mode) | optimized(mode)
        found["resumed"] = networks("eager", resumed=True)
    cases.save(path, found, {} if modes else refused())


if __name__ == "__main__":
    main(*sys.argv[1:])
