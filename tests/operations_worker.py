"""Computes portable operations in one framework, in its environment, for the tests.

    python operations_worker.py FRAMEWORK

Reads requests from stdin and answers on stdout, each a length in 8 bytes and an npz archive. A request holds a JSON
(the operation as MODULE.NAME, its options, and the mode: eager, compiled, or TensorFlow's graph), the arrays (one of no
elements and of type bool stands for None), and the gradient of the result, repeated or cut to its size. The answer
holds the results and the gradients, as far as they are arrays.
"""

import importlib
import io
import json
import os
import sys
from collections.abc import Callable

import numpy as np

NONE = np.zeros(0, bool)


def is_none(array) -> bool:
    return array.dtype == bool and array.size == 0 and array.ndim == 1


class PyTorch:
    def __init__(self) -> None:
        import torch

        torch.set_num_threads(2)
        self.torch = torch

    def __call__(self, operation, options, mode, arrays, gradient):
        from repro.portable.pytorch.binding import apply

        given = [None if array is None else self.torch.from_numpy(array.copy()) for array in arrays]
        leaves = [each for each in given if each is not None and each.is_floating_point()]
        for leaf in leaves:
            leaf.requires_grad_()
        found = apply(operation, *given, **options)
        results = found if isinstance(found, tuple) else (found,)
        if results[0].requires_grad:
            results[0].backward(self.torch.from_numpy(np.resize(gradient, results[0].shape)))
        return [each.detach().numpy() for each in results if each is not None], [
            leaf.grad.numpy() for leaf in leaves if leaf.grad is not None
        ]


class JAX:
    def __init__(self) -> None:
        import jax

        jax.config.update("jax_enable_x64", True)
        self.jax = jax

    def __call__(self, operation, options, mode, arrays, gradient):
        from repro.portable.jax.binding import apply

        floats = [i for i, array in enumerate(arrays) if array is not None and array.dtype.kind == "f"]
        others = {i: array for i, array in enumerate(arrays) if i not in floats}

        def both(given, others, gradient):
            def call(*leaves):
                every = [dict(zip(floats, leaves, strict=True)).get(i, others.get(i)) for i in range(len(arrays))]
                found = apply(operation, *every, **options)
                results = found if isinstance(found, tuple) else (found,)
                return results[0], [each for each in results[1:] if each is not None]

            first, pull, rest = self.jax.vjp(call, *given, has_aux=True)
            return [first, *rest], list(pull(self.jax.numpy.resize(gradient, first.shape)))

        run = self.jax.jit(both) if mode == "compiled" else both
        found = run([arrays[i] for i in floats], others, gradient)
        return [[np.asarray(each) for each in part] for part in found]


class TensorFlow:
    def __init__(self) -> None:
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(2)
        self.tf = tf

    def __call__(self, operation, options, mode, arrays, gradient):
        from repro.portable.tensorflow.binding import apply

        tf = self.tf

        def both(given, gradient):
            leaves = [each for each in given if each is not None and each.dtype.is_floating]
            with tf.GradientTape() as tape:
                tape.watch(leaves)
                found = apply(operation, *given, **options)
                results = found if isinstance(found, (tuple, list)) else (found,)
            places = np.resize(np.arange(gradient.shape[0]), results[0].shape)
            gradients = tape.gradient(results[0], leaves, tf.gather(gradient, places))
            return [each for each in results if each is not None], [each for each in gradients if each is not None]

        run = both if mode == "eager" else tf.function(both, jit_compile=mode == "compiled")
        found = run([None if array is None else tf.constant(array) for array in arrays], tf.constant(gradient))
        return [[each.numpy() for each in part] for part in found]


def main(framework: str) -> None:
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    made: dict[str, Callable] = {"pytorch": PyTorch, "jax": JAX, "tensorflow": TensorFlow}
    worker = made[framework]()
    while header := requests.read(8):
        request = np.load(io.BytesIO(requests.read(int.from_bytes(header, "little"))))
        asked = json.loads(str(request["request"]))
        module, name = asked["operation"].split(".")
        operation = getattr(importlib.import_module(f"repro.portable.operations.{module}"), name)
        options = {key: tuple(value) if isinstance(value, list) else value for key, value in asked["options"].items()}
        given = [request[f"array{i}"] for i in range(asked["arrays"])]
        arrays = [None if is_none(array) else array for array in given]
        results, gradients = worker(operation, options, asked["mode"], arrays, request["gradient"])
        buffer = io.BytesIO()
        np.savez(buffer, **{f"result{i}": each for i, each in enumerate(results)},
                 **{f"gradient{i}": each for i, each in enumerate(gradients)})  # fmt: skip
        answers.write(len(buffer.getvalue()).to_bytes(8, "little") + buffer.getvalue())
        answers.flush()


if __name__ == "__main__":
    main(sys.argv[1])
