"""Definitions that graphs run without Python, beside eager code.

    python tensorflow_native.py

Prints JSON: whether the bits are equal, and whether they were computed without Python.
"""

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from itertools import cycle
from typing import Any

import numpy as np
import tensorflow as tf

from programs.tensorflow_definitions import same
from repro.portable.kernels.numpy import threads
from repro.portable.modes import tensorflow as portable
from repro.portable.modes.tensorflow.dispatcher import native

threads.count = cache(lambda: 3)
DRAW = np.random.default_rng(0)
TURNS = 12
"""Programs are known after three turns with the same shapes."""


def numbers(*shape: int, special: bool = True) -> Any:
    """Numbers of many sizes; some of them have no neighbours, or are too small for TensorFlow's threads."""
    x = np.ldexp(DRAW.standard_normal(shape, np.float32), DRAW.integers(-4, 4, shape))
    if special and x.size > 8:
        x.reshape(-1)[:8] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-39, -1e-45, 3e38]
    return tf.constant(x)


def plain_numbers(shapes: Sequence[tuple[int, ...]]) -> list[Any]:
    return [numbers(*shape, special=False) for shape in shapes]


def plain(results: Any) -> list[Any]:
    """Arrays in which each NaN is the same one."""
    return [
        np.where(np.isnan(each), each.dtype.type(np.nan), each) for each in map(np.asarray, tf.nest.flatten(results))
    ]


def alike(function: Callable[..., Any], *names: str, arguments: Callable[[], list[Any]]) -> dict[str, bool]:
    """Whether a graph has the bits of eager code each time, and which operations ran without Python."""
    graph, before = tf.function(function), native.counts()
    equal = []
    for _ in range(TURNS):
        given = arguments()
        equal.append(same(plain(graph(*given)), plain(function(*given))))
    after = native.counts() - before
    return {"equal": all(equal)} | {name: after[name] > 0 for name in names}


def functions(x: Any, y: Any) -> list[Any]:
    return [
        tf.exp(x),
        tf.sigmoid(x),
        tf.tanh(x),
        tf.math.erf(x),
        tf.nn.elu(x),
        tf.math.rsqrt(tf.abs(x)),
        tf.atan2(x, y),
    ]


def reductions(x: Any, axes: Any) -> list[Any]:
    return [tf.reduce_sum(x, axes), tf.reduce_mean(x, axes, keepdims=True), tf.nn.softmax(x), tf.nn.log_softmax(x)]


def products(x: Any, y: Any) -> list[Any]:
    """Of arrays that are one in memory at first, as in a loop that begins with its weights."""
    first = tf.linalg.matmul(x, y)
    for _ in tf.range(5):
        x = tf.linalg.matmul(x, y)
    return [first, x, tf.linalg.matmul(x, y, transpose_a=True), tf.linalg.matmul(y, x, transpose_b=True)]


def powers(x: Any, exponent: Any) -> list[Any]:
    return [x**exponent, tf.reduce_sum(x) ** exponent]


def convolutions(stride: int, padding: str) -> Callable[..., Any]:
    """A convolution and its gradients."""

    def convolved(x: Any, w: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch((x, w))
            y = tf.nn.conv2d(x, w, stride, padding)
            total = tf.reduce_sum(tf.sigmoid(y))
        return y, tape.gradient(total, (x, w))

    return convolved


EINSUMS = {
    "abc,cde->abde": ((2, 5, 8), (8, 2, 4)),
    "aecd,abcd->acbe": ((2, 7, 3, 8), (2, 5, 3, 8)),
    "acbe,aecd->abcd": ((2, 3, 5, 7), (2, 7, 3, 8)),
    "ab,cb->ca": ((5, 4), (6, 4)),
}
"""As attention has them, and their gradients."""
BY_NUMBERS = {"acbe,aecd->abcd"}
"""Of these the first factor may be shares, whose products have other kernels: Python looks each time, as at batches of matrices."""
FILTERS: dict[str, tuple[int, str, tuple[int, ...], tuple[int, ...]]] = {
    "large convolution": (1, "SAME", (32, 16, 16, 64), (3, 3, 64, 64)),
    "strides": (2, "SAME", (4, 9, 8, 64), (3, 3, 64, 64)),
    "one tap": (2, "VALID", (4, 9, 8, 64), (1, 1, 64, 64)),
}
"""Stride, padding, shapes of images and filters. The first has some blocks of samples."""
CONVOLUTION = "Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"
EXPONENTS = cycle([1.0, 2.0, 3.0, -1.0, 0.5, -0.5, 0.3, 4.0])
AXES = cycle([[0], [1], [-1]])
NO_AXES = np.zeros(0, np.int32)
SIZES = cycle([5, 7])


def cases() -> dict[str, dict[str, bool]]:
    square = numbers(6, 6, special=False) * 0.1  # a NaN would be in each product
    results = {}
    for equation, shapes in EINSUMS.items():
        alone = () if equation in BY_NUMBERS else ("Einsum",)
        results[equation] = alike(partial(tf.einsum, equation), *alone, arguments=partial(plain_numbers, shapes))
    for name, (stride, padding, *sizes) in FILTERS.items():
        results[name] = alike(convolutions(stride, padding), *CONVOLUTION, arguments=partial(plain_numbers, sizes))
    return results | {
        "functions": alike(functions, "Exp", "Sigmoid", "Tanh", "Atan2", arguments=lambda: [numbers(33, 5)] * 2),
        "broadcast": alike(tf.atan2, "Atan2", arguments=lambda: [numbers(7, 5), numbers(5)]),
        "doubles": alike(tf.exp, "Exp", arguments=lambda: [tf.cast(numbers(9), tf.float64)]),
        "reductions": alike(
            reductions, "Sum", "Mean", "Softmax", arguments=lambda: [numbers(4, 9), tf.constant(next(AXES))]
        ),
        "no axes": alike(tf.reduce_sum, "Sum", arguments=lambda: [numbers(4, 9), tf.constant(NO_AXES)]),
        "shapes": alike(functions, "Exp", arguments=lambda: [numbers(next(SIZES), 3)] * 2),
        "products": alike(products, "MatMul", arguments=lambda: [square, square]),
        "batches": alike(tf.matmul, arguments=lambda: [numbers(3, 4, 5), numbers(3, 5, 6)]),
        "large": alike(tf.exp, "Exp", arguments=lambda: [numbers(2**20 + 3)]),
        "large products": alike(tf.matmul, "MatMul", arguments=lambda: [numbers(600, 300), numbers(300, 500)]),
        "powers": alike(powers, "Pow", arguments=lambda: [numbers(5, 3), tf.constant(next(EXPONENTS))]),
        "sums of arrays": alike(lambda *x: tf.add_n(x), "AddN", arguments=lambda: [numbers(4, 3) for _ in range(4)]),
        "none": alike(tf.exp, arguments=lambda: [tf.zeros((0, 3))]),
        "halves": alike(tf.exp, arguments=lambda: [tf.cast(numbers(20), tf.bfloat16)]),
    }


def derivatives() -> bool:
    """Tests second derivatives, of which each part runs without Python."""

    def second(x: Any) -> Any:
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.reduce_sum(tf.tanh(x @ x) * tf.sigmoid(x))
            gradient = inner.gradient(y, x)
        return gradient, outer.gradient(gradient, x)

    return alike(second, "TanhGrad", arguments=lambda: [numbers(5, 5, special=False)])["equal"]


def by_threads() -> bool:
    """Tests that calls at one time have their own results."""
    graph = tf.function(functions, reduce_retracing=True)
    given = [numbers(size, 2**14) for size in (1, 2, 9, 2, 1, 9, 9, 9)]
    with ThreadPoolExecutor(4) as pool:
        return all(pool.map(lambda x: same(plain(graph(x, x)), plain(functions(x, x))), given * 4))


def errors() -> str:
    """The message of a definition that fails as a graph runs."""
    graph = tf.function(tf.matmul, input_signature=[tf.TensorSpec([None, None]), tf.TensorSpec([None, None])])
    try:
        graph(numbers(2, 3), numbers(4, 5))
    except tf.errors.InvalidArgumentError as error:
        return str(error)
    return ""


def precisions() -> bool:
    """Tests that a graph computes by the precision that is set when it runs."""
    portable.disable()
    values, given = [], [numbers(8, 8, special=False), numbers(8, 8, special=False)]
    graph = None
    for precision in ("high", "highest", "high"):
        with portable.enable(precision=precision):
            graph = graph or tf.function(tf.matmul)
            values.append([graph(*given) for _ in range(4)])
            if not same(values[-1], [tf.matmul(*given)] * 4):
                return False
    return same(values[0], values[2]) and not same(values[0], values[1])


def elsewhere() -> str:
    """The message for a graph of another process, whose addresses mean nothing here."""
    with tf.Graph().as_default() as graph:
        tf.exp(tf.constant([1.0, 2.0]), name="result")
    given = graph.as_graph_def()
    given.node.remove(next(each for each in given.node if each.op == "Exp"))  # which nobody runs
    next(each for each in given.node if each.name == "result").attr["process"].i += 1
    with tf.Graph().as_default():
        tf.import_graph_def(given, name="")
        try:
            tf.compat.v1.Session().run("result:0")
        except tf.errors.FailedPreconditionError as error:
            return str(error)
    return ""


if __name__ == "__main__":
    portable.enable()
    results = {
        "cases": cases(),
        "derivatives": derivatives(),
        "threads": by_threads(),
        "error": errors(),
        "elsewhere": elsewhere(),
    }
    print(json.dumps(results | {"precisions": precisions()}))
