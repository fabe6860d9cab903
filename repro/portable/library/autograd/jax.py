"""Operations on JAX's arrays, with gradients.

Everything is float32. Results and gradients have the same bits in PyTorch, TensorFlow and JAX, on any device, eager or
compiled: docs/reference/specification.md says what each function computes.
"""

from functools import cache
from typing import Any

import jax
from jax import Array

from repro.portable.arguments import refuse_second_derivative
from repro.portable.backends.jax import Backend
from repro.portable.definitions.grids import Operation


def apply(operation: Operation, *arrays: Array | None, **options: Any):
    """The result of an operation of repro.portable.definitions, with its gradient."""
    shapes = tuple(None if array is None else tuple(array.shape) for array in arrays)
    return _bound(operation, tuple(sorted(options.items())), shapes, (Backend.ranks, Backend.engine))(*arrays)


@cache
def _bound(operation: Operation, options: tuple[tuple[str, Any], ...], shapes: tuple, _: object):
    """An operation as JAX differentiates it, another for other ranks or engines, as JAX remembers what it traced."""

    @jax.custom_vjp
    def call(*arrays: Array | None):
        return compute(*arrays)[0]

    def forward(*arrays: Array | None):
        return compute(*once_differentiable(arrays))

    def compute(*arrays: Array | None):
        results, saved = operation.forward(Backend, *Backend.materialized(arrays), **dict(options))
        return Backend.materialized(results), saved

    def backward(saved: Any, gradient: Any):
        first = gradient[0] if isinstance(gradient, tuple) else gradient
        saved, first = once_differentiable((saved, first))
        gradients = operation.backward(Backend, saved, first, (True,) * len(shapes), shapes, **dict(options))
        return Backend.materialized(gradients)

    call.defvjp(forward, backward)
    return call


def once_differentiable(arrays: Any) -> Any:
    """Pass arrays, in nested tuples, whose gradient may be taken once: UsageError where it is differentiated, too.

    Each by itself, as JAX takes out of a loop what is the same in all its steps.
    """
    return jax.tree.map(lambda x: _once(x) if isinstance(x, jax.core.Tracer) else x, arrays)


@jax.custom_jvp
def _once(x: Array) -> Array:
    return x


@_once.defjvp
def _refuse(*_: Any):
    raise refuse_second_derivative()
