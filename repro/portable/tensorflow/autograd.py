"""Operations on TensorFlow's tensors, with gradients.

Everything is float32. Results and gradients have the same bits in PyTorch, TensorFlow and JAX, on any device, eager, in
a graph or compiled: docs/specification.md says what each function computes.
"""

from typing import Any

import tensorflow as tf

from repro.portable.operations.grids import Operation
from repro.portable.tensorflow.backend import Backend


def apply(operation: Operation, *arrays: tf.Tensor | None, **options: Any):
    """The result of an operation of repro.portable.operations, with its gradient."""
    there = [index for index, array in enumerate(arrays) if array is not None]
    shapes = tuple(None if array is None else tuple(array.shape) for array in arrays)

    @tf.custom_gradient
    def call(*given: tf.Tensor):
        every: list[tf.Tensor | None] = [None] * len(arrays)
        for index, array in zip(there, given, strict=True):
            every[index] = array
        found, saved = operation.forward(Backend, *Backend.materialized(every), **options)

        def gradients(gradient: tf.Tensor, *_: tf.Tensor) -> list[tf.Tensor | None]:
            every = operation.backward(Backend, saved, gradient, (True,) * len(shapes), shapes, **options)
            return Backend.materialized([every[index] for index in there])

        return Backend.materialized(found), gradients

    return call(*(arrays[index] for index in there))
