"""Zeros, NaN and the lengths of ranges, where TensorFlow's formulas have conventions of their own: beside its kernels."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from repro.portable.modes.tensorflow.dispatcher import dispatch

X = np.array([-1.0, 0.0, -0.0, 1.0, np.nan, 0.0, np.inf], np.float32)
FACTORS = np.array([1.0, 2.0, 1.0, 0.0, 2.0, 0.0, 0.0], np.float32)
RANGES = [(0.0, 0.3, 0.1), (0.0, 1.0, 0.1), (0.0, 9.0, 0.1), (1.0, -2.0, -0.3), (0.0, 0.7, 0.07)]


def slope(function: Callable[[Any], Any]) -> Any:
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return tape.gradient(y, x, tf.constant(FACTORS))


def lengths(dtype: str) -> Any:
    return [tf.size(tf.range(*(tf.constant(each, dtype) for each in ends))) for ends in RANGES]


def accumulated() -> Any:
    return tf.function(lambda x: tf.math.accumulate_n([x, x + 1.0, x + 2.0]))(tf.ones(3))


FUNCTIONS = (tf.nn.elu, tf.nn.selu, tf.sqrt, tf.math.rsqrt, tf.math.reciprocal)
CALLS: dict[str, Callable[[], Any]] = {
    **{f"gradient of {function.__name__}": partial(slope, function) for function in FUNCTIONS},
    **{f"ranges of {dtype}": partial(lengths, dtype) for dtype in ("float32", "float64", "bfloat16", "float16")},
    "xlogy": lambda: tf.math.xlogy([0.0, 0.0, 0.0], [np.nan, -1.0, 0.0]),
    "xlog1py": lambda: tf.math.xlog1py([0.0, 0.0, 0.0], [np.nan, -3.0, -1.0]),
    "accumulate_n": accumulated,
    "log1p": lambda: tf.math.log1p(tf.constant([1.7e308, 1.2e308], tf.float64)),
}


def wrong() -> list[str]:
    """Calls with another result than TensorFlow's own."""
    lines = []
    for name, call in CALLS.items():
        with dispatch.Passing():
            native = [each.numpy() for each in tf.nest.flatten(call())]
        results = [each.numpy() for each in tf.nest.flatten(call())]
        if not all(np.allclose(x, y, 1e-6, 0, True) for x, y in zip(results, native, strict=True)):
            lines.append(f"{name}: {results}, TensorFlow's own {native}")
    return lines
