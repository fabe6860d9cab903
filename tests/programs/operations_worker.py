"""Worker that computes operations in one framework.

    python operations_worker.py FRAMEWORK

Reads requests from stdin and answers on stdout, each a length in 8 bytes and an npz archive. A request holds a JSON
(the operation as MODULE.NAME, its options, and the mode: eager, compiled, PyTorch's kernels, TensorFlow's graph, or the
matmul backend int8 or int16), the arrays (one of no elements and of type bool stands for None), and the gradient of the
result, repeated or cut to its size. The answer holds the results and the gradients, as far as they are arrays.
"""

import importlib
import io
import json
import os
import sys
import traceback
from collections.abc import Callable
from functools import cache

import numpy as np

from programs import unprotected
from repro.portable.definitions import optimizers, random
from repro.portable.definitions.grids import Operation
from repro.portable.definitions.xp import Backend
from repro.portable.kernels import machine

NONE = np.zeros(0, bool)


def is_none(array) -> bool:
    return array.dtype == bool and array.size == 0 and array.ndim == 1


# --- functions for the tests, over a backend ------------------------------------------------------------------------


def clip(xp: Backend, *gradients, limit):
    clipped, norm = optimizers.clip(xp, list(gradients), limit)
    return (*clipped, norm)


def philox(xp: Backend, counter, key):
    """[N, 4] and [N, 2] -> [N, 4]."""
    words = random.philox(xp, [counter[:, i] for i in range(4)], [key[:, i] for i in range(2)])
    return xp.stack(words, 1)


class Recording:
    """A backend with an r32 of its own."""

    def __init__(self, backend, r32) -> None:
        self.backend, self.r32 = backend, r32

    def __getattr__(self, name: str):
        return getattr(self.backend, name)


@cache
def unrounded(operation):
    def function(xp: Backend, *arrays, **options):
        results = []

        def r32(x):
            results.append(x)
            return xp.r32(x)

        recording = Recording(xp, r32)
        if isinstance(operation, Operation):
            *given, gradient = arrays
            _, saved = operation.forward(recording, *given, **options)
            shapes = [None if array is None else tuple(array.shape) for array in given]
            operation.backward(recording, saved, gradient, [True] * len(given), shapes, **options)
        else:
            operation(recording, *arrays, **options)
        return results

    return function


def listed(results) -> list:
    return [each for each in (results if isinstance(results, (tuple, list)) else (results,)) if each is not None]


class PyTorch:
    def __init__(self) -> None:
        import torch

        self.torch, self.asked = torch, 0

    def __call__(self, operation, options, mode, arrays, gradient):
        from repro.portable.compiler.pytorch import plan
        from repro.portable.kernels import pytorch as compiler

        compiler.available = mode in ("kernels", "int16")
        if not compiler.available:
            self.torch.set_num_threads(2)
            return self.once(operation, options, arrays, gradient)
        self.asked += 1
        self.torch.set_num_threads(3 if self.asked % 8 == 0 else 1)  # threads wait long where cores are busy
        for _ in range(3):  # the second call is traced, the third runs the kernels
            result = self.once(operation, options, arrays, gradient)
        assert plan._plans and all(each is None or each.sound for each in plan._plans.values())
        return result

    def once(self, operation, options, arrays, gradient):
        from repro.portable.library.autograd.pytorch import apply, run

        given = [None if array is None else self.torch.from_numpy(array.copy()) for array in arrays]
        if not isinstance(operation, Operation):
            return [each.numpy() for each in listed(run(operation, *given, **options))], []
        leaves = [each for each in given if each is not None and each.is_floating_point()]
        for leaf in leaves:
            leaf.requires_grad_()
        results = listed(apply(operation, *given, **options))
        if results[0].requires_grad:
            results[0].backward(self.torch.from_numpy(np.resize(gradient, results[0].shape)))
        return [each.detach().numpy() for each in results], [
            leaf.grad.numpy() for leaf in leaves if leaf.grad is not None
        ]


class JAX:
    def __init__(self) -> None:
        import jax

        jax.config.update("jax_enable_x64", True)
        self.jax = jax
        self.made: dict = {}

    def __call__(self, operation, options, mode, arrays, gradient):
        floats = [i for i, array in enumerate(arrays) if array is not None and array.dtype.kind == "f"]
        others = {i: array for i, array in enumerate(arrays) if i not in floats}
        key = operation, str(options), mode, str(floats)  # JAX compiles for each shape by itself
        if key not in self.made:
            run = self.function(operation, options, floats, len(arrays))
            self.made[key] = run if mode == "eager" else self.jax.jit(run)
        result = self.made[key]([self.jax.numpy.asarray(arrays[i]) for i in floats], others, gradient)
        return [[np.asarray(each) for each in part] for part in result]

    def function(self, operation, options, floats, count):
        from repro.portable.backends.jax import Backend
        from repro.portable.library.autograd.jax import apply

        def both(given, others, gradient):
            def call(*leaves):
                every = [dict(zip(floats, leaves, strict=True)).get(i, others.get(i)) for i in range(count)]
                if not isinstance(operation, Operation):
                    return operation(Backend, *every, **options)
                first, *rest = listed(apply(operation, *every, **options))
                return first, rest

            if not isinstance(operation, Operation):
                return listed(call(*given)), []
            first, pull, rest = self.jax.vjp(call, *given, has_aux=True)
            return [first, *rest], list(pull(self.jax.numpy.resize(gradient, first.shape)))

        return both


class TensorFlow:
    def __init__(self) -> None:
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(2)
        self.tf = tf
        self.made: dict = {}

    def __call__(self, operation, options, mode, arrays, gradient):
        tf = self.tf
        key = operation, str(options), mode
        if key not in self.made:
            run = self.function(operation, options)
            self.made[key] = run if mode == "eager" else tf.function(run, jit_compile=mode != "graph")
        given = [None if array is None else tf.constant(array) for array in arrays]
        return [[each.numpy() for each in part] for part in self.made[key](given, tf.constant(gradient))]

    def function(self, operation, options):
        from repro.portable.backends.tensorflow import Backend
        from repro.portable.library.autograd.tensorflow import apply

        tf = self.tf

        def both(given, gradient):
            if not isinstance(operation, Operation):
                return listed(operation(Backend, *given, **options)), []
            leaves = [each for each in given if each is not None and each.dtype.is_floating]
            with tf.GradientTape() as tape:
                tape.watch(leaves)
                results = listed(apply(operation, *given, **options))
            places = np.resize(np.arange(gradient.shape[0]), results[0].shape)
            gradients = tape.gradient(results[0], leaves, tf.gather(gradient, places))
            return results, [each for each in gradients if each is not None]

        return both


TESTS = {"worker": sys.modules[__name__], "unprotected": unprotected}


def answer(worker, backend, request) -> dict[str, np.ndarray]:
    asked = json.loads(str(request["request"]))
    backend.Backend.engine = asked["mode"] if asked["mode"] in ("int8", "int16") else "float64"
    module, name = asked["operation"].rsplit(".", 1)
    home = TESTS.get(module) or importlib.import_module(f"repro.portable.definitions.{module}")
    options = {key: tuple(value) if isinstance(value, list) else value for key, value in asked["options"].items()}
    given = [request[f"array{i}"] for i in range(asked["arrays"])]
    arrays = [None if is_none(array) else array for array in given]
    operation = unrounded(getattr(home, name)) if asked["unrounded"] else getattr(home, name)
    results, gradients = worker(operation, options, asked["mode"], arrays, request["gradient"])
    result = {f"result{i}": each for i, each in enumerate(results)}
    return result | {f"gradient{i}": each for i, each in enumerate(gradients)}


def main(framework: str) -> None:
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    made: dict[str, Callable] = {"pytorch": PyTorch, "jax": JAX, "tensorflow": TensorFlow}
    worker, backend = made[framework](), importlib.import_module(f"repro.portable.backends.{framework}")
    backend.LEAST_WORK = 0  # type: ignore[attr-defined] # small products, too, are made by the engine that is asked for
    machine.SHARE, machine.SMALL = 1, 0  # threads and good code for few elements, too
    while header := requests.read(8):
        request = np.load(io.BytesIO(requests.read(int.from_bytes(header, "little"))))
        buffer = io.BytesIO()
        try:
            result = answer(worker, backend, request)
        except Exception:
            result = {"error": np.array(traceback.format_exc())}
        np.savez(buffer, **result)  # type: ignore[arg-type]
        answers.write(len(buffer.getvalue()).to_bytes(8, "little") + buffer.getvalue())
        answers.flush()


if __name__ == "__main__":
    main(sys.argv[1])
