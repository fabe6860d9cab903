"""Kernels of TensorFlow's mode beside their definitions: products, convolutions, threads."""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import tensorflow as tf

from programs.tensorflow_definitions import same
from repro.portable.backends.numpy import Backend
from repro.portable.compiler.numpy import integers, plan
from repro.portable.definitions.products import batched
from repro.portable.kernels.numpy import threads, workers
from repro.portable.modes.tensorflow.dispatcher import dispatch

# --- products ---------------------------------------------------------------------------------------------------------

SIZES = [(1, 3, 7, 10), (2, 16, 64, 33), (3, 37, 2, 32), (1, 5, 1, 1)]


def by_kernels() -> dict[str, bool]:
    """Tests that products of matrices, of any sizes and the other way round, are those that their definition gives."""
    result, draw = {}, np.random.default_rng(0)
    for batch, rows, terms, columns in SIZES:
        a, b = (draw.standard_normal((batch, *shape), np.float32) for shape in ((rows, terms), (terms, columns)))
        a *= np.float32(2.0) ** draw.integers(-60, 60, a.shape)
        a[0, 0, 0], b[0, -1, 0], b[-1, -1, -1] = np.nan, np.inf, 0.0
        expected = batched(Backend, a, b, slices=1)
        for turned in (0, 1, 2, 3):
            left = a.swapaxes(1, 2).copy() if turned & 1 else a
            right = b.swapaxes(1, 2).copy() if turned & 2 else b
            given = {"adj_x": bool(turned & 1), "adj_y": bool(turned & 2)}
            with np.errstate(all="ignore"):
                y = dispatch.definitions["BatchMatMulV2"].function(given, left, right)
            result[f"{batch, rows, terms, columns}, {turned}"] = bool(np.array_equal(y, expected, equal_nan=True))
    return result


FILTERS: list[tuple[tuple[int, int], int, int, int, str]] = [
    ((3, 3), 1, 1, 5, "SAME"),
    ((3, 2), 2, 1, 8, "SAME"),
    ((2, 3), 1, 2, 4, "VALID"),
    ((1, 1), 1, 1, 4, "VALID"),
    ((2, 2), 3, 1, 3, "VALID"),
]
"""Taps, stride, dilation, channels and padding."""


def convolved(taps: tuple[int, int], stride: int, dilation: int, channels: int, padding: str) -> list[np.ndarray]:
    """A convolution and both its gradients."""
    draw, called = np.random.default_rng(0), dispatch.definitions
    x, w = (draw.standard_normal(shape, np.float32) for shape in ((3, 8, 7, channels), (*taps, channels, 6)))
    x[1] *= np.float32(2.0**20)
    given = {"strides": [1, stride, stride, 1], "dilations": [1, dilation, dilation, 1], "padding": padding}
    y = called["Conv2D"].function(given, x, w)
    g = draw.standard_normal(y.shape, np.float32)
    grad_images = called["Conv2DBackpropInput"].function(given, np.array(x.shape), w, g)
    return [y, grad_images, called["Conv2DBackpropFilter"].function(given, x, np.array(w.shape), g)]


def convolutions() -> dict[str, bool]:
    """Tests that kernels give the convolutions that float64 gives."""
    before, result = integers.available, {}
    for case in FILTERS:
        made = convolved(*case)
        integers.available = False
        result[str(case)] = same(made, convolved(*case))
        integers.available = before
    result["infinite"] = infinite()
    return result


def infinite() -> bool:
    """Tests that groups with an infinite number, or NaN, have the same slices in NumPy and in a kernel, which is used."""
    x, before = np.ones((3, 5, 6), np.float32), set(plan._plans)
    x[0, 4], x[1, :2] = np.inf, np.nan
    results = [integers.quantized(x, (1,), 1) for _ in range(3)]
    made = [plan._plans[key] for key in plan._plans.keys() - before]
    return all(same(results[0], each) for each in results) and [each.sound for each in made if each] == [True]


# --- threads ----------------------------------------------------------------------------------------------------------


def by_threads() -> dict[str, bool]:
    """Tests that calls that share a kernel's work have the bits of calls that do not."""
    x = tf.random.stateless_normal([2**20 + 5], [1, 2])
    expected = tf.concat([tf.exp(part) for part in tf.split(x, [2**14] * 2**6 + [5])], 0)
    threads.count = cache(lambda: 4)
    results = {"one": all(same(tf.exp(x), expected) for _ in range(3))}
    with ThreadPoolExecutor(4) as pool:
        results["four"] = all(pool.map(lambda _: same(tf.exp(x), expected), range(8)))
    function = dispatch.definitions["Exp"].function
    child = os.fork()
    if not child:
        os._exit(not same(function({}, x.numpy()), expected))
    return results | {"child": os.waitpid(child, 0)[1] == 0, "shared": bool(workers.Workers.all)}
