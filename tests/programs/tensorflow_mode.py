"""The mode for any TensorFlow program: what changes numbers elsewhere, gradients, kernels, refusals, switches.

    python tensorflow_mode.py

Prints JSON.
"""

import inspect
import json
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from programs import conversion_cases
from programs import tensorflow_ends as ends
from programs import tensorflow_lite as lite
from programs import tensorflow_regions as regions
from programs.tensorflow_definitions import classes, images, same, samples, systems
from programs.tensorflow_kernels import by_kernels, by_threads, convolutions
from repro.portable.modes import tensorflow as portable
from repro.portable.modes.common.refusal import RefusedError
from repro.portable.modes.tensorflow.dispatcher import checks, dispatch

portable.enable()
OPTIONS = {"constant_folding": True, "arithmetic_optimization": True, "disable_meta_optimizer": False}


# --- one operation after the other ------------------------------------------------------------------------------------


def by_numpy(a: np.ndarray) -> list[np.ndarray]:
    """The results of checks.planted, each operation rounded by itself."""
    number, size, table = a.dtype.type, np.abs(a), a.reshape(16, 16)
    return [
        *(a * a[::-1] + a, a / number(3), table / table[:1], number(1) / np.sqrt(size), a / np.sqrt(size)),
        *((a + number(1e8)) - number(1e8), (a * number(0.3)) * number(0.7), (a + number(0.3)) + number(0.7)),
    ]


def session(a: Any, b: Any) -> Any:
    level = tf.compat.v1.OptimizerOptions(global_jit_level=1)
    config = tf.compat.v1.ConfigProto(graph_options=tf.compat.v1.GraphOptions(optimizer_options=level))
    with tf.Graph().as_default(), tf.compat.v1.Session(config=config) as opened:
        places = [tf.compat.v1.placeholder(x.dtype, x.shape) for x in (a, b)]
        return opened.run(checks.planted(*places), dict(zip(places, (a.numpy(), b.numpy()), strict=True)))


def ways() -> dict[str, Callable[..., Any]]:
    return {
        "eager": checks.planted,
        "graph": tf.function(checks.planted),
        "compiled": tf.function(checks.planted, jit_compile=True),
        "session": session,
        "data": lambda a, b: next(iter(tf.data.Dataset.from_tensors((a, b)).map(checks.planted))),
    }


def hazards() -> dict[str, bool]:
    results = {}
    for made in (checks.singles, checks.doubles):
        a = made(0, 256, 4)
        expected, given = by_numpy(a.numpy()), (a, a[::-1])
        for name, way in ways().items():
            results[f"{name}, {a.dtype.name}"] = same(way(*given), expected)
        tf.config.optimizer.set_jit(True)
        tf.config.optimizer.set_experimental_options(OPTIONS)
        results[f"options, {a.dtype.name}"] = same(tf.function(checks.planted)(*given), expected)
    return results


def without() -> bool:
    """True if XLA gives other numbers where the mode is off."""
    a = checks.singles(0, 256, 4)
    return not same(tf.function(checks.planted, jit_compile=True)(a, a[::-1]), by_numpy(a.numpy()))


def conversions() -> dict[str, list[str]]:
    """Ways to make integers of fractions, and the conversions that give wrong ones."""
    numbers = tf.constant(conversion_cases.NUMBERS, tf.float64)
    floats = {each: tf.cast(numbers, each) for each in ("float16", "bfloat16", "float32", "float64")}
    many = {source: tf.tile(each, [conversion_cases.COPIES]) for source, each in floats.items()}
    plain = {source: tf.cast(each, tf.float64).numpy() for source, each in floats.items()}

    def converting(way: Callable[[Any, str], Any]) -> list[str]:
        return list(conversion_cases.wrong(plain, lambda source, target: way(many[source], target).numpy()))

    def in_graph(x: Any, target: str) -> Any:
        return tf.function(lambda x: tf.cast(x, target))(x)

    def by_itself(x: Any, target: str) -> Any:
        return tf.raw_ops.Cast(x=x.numpy(), DstT=target)

    return {"eager": converting(tf.cast), "graph": converting(in_graph), "raw": converting(by_itself)}


# --- gradients --------------------------------------------------------------------------------------------------------

X, W = checks.singles(20, 48, 2)[:, None] * 0.1, checks.singles(21, 9, 2)
X, W = tf.reshape(X, [2, 4, 6]), tf.reshape(W, [3, 3]) * 0.1


def loss(x: Any, w: Any) -> Any:
    y = tf.nn.softmax(tf.tanh(tf.reshape(x, [-1, 3]) @ w))
    return tf.reduce_sum(tf.exp(y) * tf.math.log(y + 1.0))


def derivatives(x: Any, w: Any) -> Any:
    """The first, and that of its squares."""
    with tf.GradientTape() as outer:
        outer.watch(w)
        with tf.GradientTape() as inner:
            inner.watch((x, w))
            y = loss(x, w)
        first = inner.gradient(y, [x, w])
        squares = tf.reduce_sum(first[1] ** 2)
    return y, first, outer.gradient(squares, w)


def loop(w: Any, turns: Any) -> Any:
    """The gradient through a loop that a graph runs."""
    with tf.GradientTape() as tape:
        tape.watch(w)
        y = w
        for _ in tf.range(turns):
            y = tf.tanh(y @ w)
        total = tf.reduce_sum(y)
    return tape.gradient(total, w)


def gradients() -> dict[str, bool]:
    graph = tf.function(derivatives, input_signature=[tf.TensorSpec([None, None, None]), tf.TensorSpec([3, 3])])
    step = 2.0**-10
    near = (loss(X, W + step) - loss(X, W - step)) / (2.0 * step)
    return {
        "eager and graph": same(derivatives(X, W), graph(X, W)),
        # A graph adds what turns give one after the other, eager code all at once.
        "loop": float(tf.reduce_max(tf.abs(loop(W, 3) - tf.function(loop)(W, tf.constant(3))))) < 2.0**-20,
        "value": abs(float(near) - float(tf.reduce_sum(derivatives(X, W)[1][1]))) < 1e-2,
    }


# --- refusals ---------------------------------------------------------------------------------------------------------


class Factor(keras.layers.Layer):
    def call(self, x: Any) -> Any:
        return tf.linalg.sqrtm(x)

    def compute_output_spec(self, x: Any) -> Any:
        return keras.KerasTensor(x.shape, x.dtype)


def foreign() -> Any:
    """A graph of TensorFlow's own operations."""
    with dispatch.Passing(), tf.Graph().as_default() as graph:
        tf.exp(tf.ones(2))
        return graph.as_graph_def()


@tf.function
def chosen(x: Any) -> Any:
    if tf.reduce_sum(x) > 0:  # AutoGraph makes a branch of it
        x = tf.linalg.sqrtm(x)
    return x


def added() -> Any:
    """A sum of sparse tensors, whose indices come first."""
    x = tf.SparseTensor([[0, 1]], tf.constant([1 + 2j]), (2, 2))
    return tf.sparse.add(x, x, 0.0)


@tf.function
def compiled_by_xla(x: Any) -> Any:
    return tf.xla.experimental.compile(lambda y: [y * 2.0 + 1.0], [x])


CASES: dict[str, Callable[[], Any]] = {
    "fft": lambda: tf.signal.rfft(tf.ones(2**23 + 1)),
    "root": lambda: tf.linalg.sqrtm(tf.ones((3, 3))),
    "branch": lambda: chosen(tf.eye(3)),
    "layer": lambda: keras.Sequential([Factor()])(tf.eye(3)[None]),
    "complex": lambda: tf.linalg.det(tf.constant([[1j]])),
    "complex sparse": added,
    "complex sparse graph": lambda: tf.function(added)(),
    "binomial": lambda: tf.random.stateless_binomial([3], [1, 2], 10.0, 0.5),
    "sampler": lambda: tf.random.learned_unigram_candidate_sampler([[1]], 1, 3, True, 10),
    "xla": lambda: compiled_by_xla(tf.ones(3)),
    "saved": lambda: tf.saved_model.save(tf.Module(), "/nonexistent"),
    "loaded": lambda: tf.graph_util.import_graph_def(foreign(), name=""),
    "interpreter": lambda: lite.interpreter().invoke(),
    "signature": lambda: lite.interpreter().get_signature_runner()(),
    "calibration": lambda: lite.calibrated().convert(),
    "traced": lambda: lite.traced().convert(),
    "session": lambda: lite.of_session().convert(),
    "code": lambda: tf.function(tf.exp, jit_compile=True).experimental_get_compiler_ir(tf.ones(2))(),
}


def refusals() -> dict[str, str]:
    results = {}
    for name, case in CASES.items():
        try:
            with tf.Graph().as_default() if name == "loaded" else nullcontext():
                case()
            results[name] = "passed"
        except RefusedError as error:
            results[name] = str(error)
    return results


def lines() -> dict[str, int]:
    """The line of each refusal in this file."""
    first = {name: inspect.getsourcelines(case)[1] for name, case in CASES.items()}
    inner = {
        "branch": chosen.python_function,
        "layer": Factor.call,
        "complex sparse": added,
        "complex sparse graph": added,
        "xla": compiled_by_xla.python_function,
    }
    return first | {name: inspect.getsourcelines(function)[1] for name, function in inner.items()}


# --- the check and the switches ---------------------------------------------------------------------------------------


def faults() -> dict[str, str]:
    """The messages of the self-check about operations that are computed otherwise."""

    def computed(name: str, function: Any, given: Any, arrays: Any) -> Any:
        result = own(name, function, given, arrays)
        return (
            [np.nextafter(x, np.float32(9)) if x.dtype == np.float32 else x for x in result]
            if name == wrong
            else result
        )

    own, result = dispatch.computed, {}
    for wrong in ("MatMul", "Conv2D", "Sum", "Exp", "random_normal", "none"):
        dispatch.computed = computed
        try:
            checks.check()
            result[wrong] = ""
        except Exception as error:
            result[wrong] = str(error)
        finally:
            dispatch.computed = own
    return result


def switches() -> dict[str, Any]:
    results: dict[str, Any] = {}
    with portable.enable():
        try:
            portable.enable(allow=["Svd"])
        except Exception as error:
            results["again"] = str(error)
    portable.disable()
    results["off"] = tf.linalg.svd(tf.ones((3, 3)))[0].shape == [3]
    wrong: dict[str, Any] = {"name": {"allow": ["Svdd"]}, "precision": {"precision": "low"}}
    for name, options in wrong.items():
        try:
            portable.enable(**options)
        except Exception as error:
            results[name] = str(error)
    portable.enable(allow=["Svd"])
    tf.linalg.svd(tf.ones((3, 3)))
    results["allowed"] = portable.counted()["allowed"]
    results["summary"] = portable.summary()
    return results


if __name__ == "__main__":
    results = {
        "hazards": hazards(),
        "conversions": conversions(),
        "gradients": gradients(),
        "products": by_kernels(),
        "convolutions": convolutions(),
        "threads": by_threads(),
        "samples": samples(),
        "systems": systems(),
        "images": images(),
        "classes": classes(),
        "ends": ends.wrong(),
        "regions": regions.wrong(),
        "refusals": refusals(),
        "lines": lines(),
        "faults": faults(),
        "counted": portable.counted(),
        "switches": switches(),
    }
    portable.disable()
    print(json.dumps(results | {"without": without(), "converted": lite.interpreted()}))
