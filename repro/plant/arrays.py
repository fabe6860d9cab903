"""Arrays of NumPy, as which Keras' variables and JAX' arrays are read and written."""

from typing import Any

from ..observe import memory
from .controls import module
from .values import Array


def array(value: Any) -> Array:
    """A variable or an array of any framework with its bytes."""
    numbers = memory.to_numpy(value)
    return Array(str(numbers.dtype.name), tuple(numbers.shape), numbers.tobytes())


def numbers(value: Array, like: Any) -> Any:
    """The NumPy array of these bytes, with the dtype and the shape of another one; ValueError if they are others."""
    current = memory.to_numpy(like)
    if (current.dtype.name, current.shape) != (value.dtype, value.shape):
        raise ValueError(f"it was {value.dtype} {value.shape} at first, and is {current.dtype.name} {current.shape}")
    return module("numpy").frombuffer(value.content, dtype=current.dtype).reshape(value.shape).copy()
