"""Operations on TensorFlow's tensors, with gradients.

Everything is float32. Results and gradients have the same bits in PyTorch, TensorFlow and JAX, on any device, eager, in
a graph or compiled: docs/reference/specification.md says what each function computes.
"""

import math
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from repro.portable.arguments import refuse_second_derivative
from repro.portable.backends.tensorflow import Backend
from repro.portable.definitions.grids import Operation


def apply(operation: Operation, *arrays: tf.Tensor | None, **options: Any):
    """The result of an operation of repro.portable.definitions, with its gradient."""
    there = [index for index, array in enumerate(arrays) if array is not None]
    shapes = tuple(None if array is None else tuple(array.shape) for array in arrays)

    @tf.custom_gradient
    def call(*given: tf.Tensor):
        every: list[tf.Tensor | None] = [None] * len(arrays)
        for index, array in zip(there, given, strict=True):
            every[index] = array
        results, saved = operation.forward(Backend, *Backend.materialized(every), **options)

        def gradients(gradient: tf.Tensor, *_: tf.Tensor) -> list[tf.Tensor | None]:
            every = operation.backward(Backend, saved, gradient, (True,) * len(shapes), shapes, **options)
            sources = [each for each in (gradient, *given) if each.dtype.is_floating]
            return once_differentiable(Backend.materialized([every[index] for index in there]), *sources)

        return Backend.materialized(results), gradients

    # Keras' variables become tensors here: outside of a graph nobody else does it.
    return call(*(tf.convert_to_tensor(arrays[index]) for index in there))


def once_differentiable(gradients: Sequence[tf.Tensor | None], *sources: tf.Tensor) -> list[tf.Tensor | None]:
    """Pass gradients with respect to these sources: UsageError where they are differentiated, too.

    TensorFlow makes the derivative of a tf.function beforehand, whether or not somebody wants it. There the error comes
    when it is computed; XLA has no errors, and NaN comes instead.
    """
    from tensorflow.python.eager import record  # no other part of TensorFlow knows whether they can be

    if tf.executing_eagerly() and not record.could_possibly_record():
        return list(gradients)
    known = [each for each in gradients if each is not None]
    inputs = (*known, *sources)

    def refuse(*wanted: tf.Tensor) -> list[tf.Tensor]:
        if tf.executing_eagerly() or inputs[0].graph is tf.compat.v1.get_default_graph():
            raise refuse_second_derivative()
        wants = tf.reduce_any([tf.reduce_any(each != 0) for each in wanted])
        with tf.control_dependencies([tf.debugging.Assert(~wants, [str(refuse_second_derivative())])]):
            return [tf.fill(each.shape, tf.where(wants, tf.constant(math.nan, each.dtype), 0)) for each in inputs]

    rest = iter(tf.custom_gradient(lambda *arrays: (arrays[: len(known)], refuse))(*inputs))
    return [None if each is None else next(rest) for each in gradients]
