"""Arguments of TensorFlow's calls: the same bits in each setting, whatever NumPy or TensorFlow computes with."""

from typing import Any
from zlib import crc32

import numpy as np
import tensorflow as tf

from programs.fuzz import contents

TYPES = ("float32", "bfloat16", "float64", "float16")
KINDS = ("plain", "huge", "tiny", "special", "empty", "scalar", "large")
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 1e-38, 1.0, -1.0])
EXPONENTS = {"float32": 90, "float64": 700, "bfloat16": 90, "float16": 10}
"""The power of two by which huge numbers are larger than plain ones; tiny ones are smaller by more."""
TINY = {"float32": -128, "float64": -990, "bfloat16": -128, "float16": -16}
LARGE = 70_001
"""Numbers of a large array, which TensorFlow's threads share."""
VALUES = 4096


class Draw:
    """Draws the arguments of one call, in the order in which they are asked for.

    Called with a shape it gives floating-point numbers of the type of the call: multiples of 2^-21 from -4 to 4, or the
    numbers of another kind. They are rounded to that type first and widened to float64 then, if that is asked for.
    """

    def __init__(self, call: str, dtype: str = "float32", kind: str = "plain", double: bool = False) -> None:
        self.dtype, self.kind, self.double = dtype, kind, double
        self.generator = np.random.Generator(np.random.PCG64(crc32(f"{call} {dtype} {kind}".encode())))

    def __call__(self, *shape: int) -> Any:
        return self.tensor(self.numbers(shape))

    def positive(self, *shape: int) -> Any:
        return self.tensor(np.abs(self.numbers(shape)) + 2.0**-10)

    def unit(self, *shape: int) -> Any:
        """Numbers from 0 to 1."""
        return self.tensor(np.abs(self.plain(shape)) * 0.25)

    def singles(self, *shape: int) -> Any:
        """Plain numbers of float32, whatever the type of the call is."""
        return tf.constant(self.plain(shape).astype(np.float32))

    def integers(self, low: int, high: int, *shape: int, dtype: Any = np.int32) -> Any:
        return tf.constant(self.generator.integers(low, high, shape).astype(dtype))

    def definite(self, *shape: int) -> Any:
        """Symmetric positive definite matrices of small integers."""
        a = self.generator.integers(-4, 5, shape)
        square = (a[..., :, None, :] * a[..., None, :, :]).sum(-1)
        return self.tensor((square + 8 * np.eye(shape[-1], dtype=int)) * 0.25)

    def elements(self, number: int = 33) -> Any:
        """Numbers of a function of each element, whose array may be empty or without axes."""
        shape = {"empty": (0, 3), "scalar": (), "large": (LARGE,)}.get(self.kind, (3, number))
        return self(*shape)

    def range(self, number: int) -> list[Any]:
        """Numbers over the whole range of the type, for each of one or two arguments."""
        whole = contents.everywhere(self.dtype, VALUES, self.generator)
        drawn = [whole] if number == 1 else list(contents.pairs(self.dtype, VALUES, self.generator))
        if self.dtype == "float64":  # TensorFlow takes its subnormals for zeros, and no wider type says what is right
            drawn = [np.where((each != 0) & (np.abs(each) < 2.0**-1022), 1.0, each) for each in drawn]
        return [self.tensor(each) for each in drawn]

    def plain(self, shape: tuple[int, ...]) -> np.ndarray:
        return self.generator.integers(-(2**23), 2**23, shape) * 2.0**-21

    def numbers(self, shape: tuple[int, ...]) -> np.ndarray:
        values = self.plain(shape)
        if self.kind == "special":
            places = self.generator.integers(0, 2 * len(SPECIAL), shape)
            return np.where(places < len(SPECIAL), SPECIAL[places % len(SPECIAL)], values)
        exponents = {"huge": EXPONENTS, "tiny": TINY}.get(self.kind)
        return values if exponents is None else np.ldexp(values, exponents[self.dtype])

    def tensor(self, values: np.ndarray) -> Any:
        with np.errstate(all="ignore"):
            return self.widened(np.asarray(values).astype(tf.as_dtype(self.dtype).as_numpy_dtype))

    def widened(self, values: np.ndarray) -> Any:
        with np.errstate(all="ignore"):
            return tf.constant(values.astype(np.float64) if self.double else values)


def results(function: Any, given: Any, graph: bool) -> Any:
    """What a function gives, in eager code or in tf.function."""

    def compute() -> Any:
        return function(**given) if isinstance(given, dict) else function(*given)

    return tf.function(compute, autograph=False)() if graph else compute()


def gradients(function: Any, given: Any, graph: bool) -> list[Any]:
    """The gradients of a function with respect to its floating-point arguments and its variables; none where it has none."""
    sources = [each for each in tf.nest.flatten(given) if isinstance(each, tf.Tensor) and each.dtype.is_floating]

    def compute() -> list[Any]:
        with tf.GradientTape() as tape:
            tape.watch(sources)
            flat = tf.nest.flatten(results(function, given, False), expand_composites=True)
        watched = [*sources, *tape.watched_variables()]
        fractions = [each for each in flat if isinstance(each, tf.Tensor) and each.dtype.is_floating]
        try:
            return tape.gradient(fractions, watched, [_weights(each) for each in fractions])
        except LookupError:  # the operation has no gradient
            return []

    return results(compute, [], graph)


def _weights(result: Any) -> Any:
    """Multiples of 1/8 from -1 to 1 for the numbers of a result, by their places."""
    places = tf.range(tf.size(result)) * 7 % 17 - 8
    return tf.cast(tf.reshape(places, tf.shape(result)), result.dtype) * 0.125


def arrays(values: Any) -> list[np.ndarray]:
    """Arrays of numbers; strings and handles are left out, and None of a gradient is an empty array."""
    flat = tf.nest.flatten(values, expand_composites=True)
    numbers = [np.zeros(0, bool) if each is None else _array(each) for each in flat if _is_array(each)]
    return [each for each in numbers if each.dtype.kind not in "OSU"]


def _array(value: Any) -> np.ndarray:
    return np.asarray(value.numpy() if hasattr(value, "numpy") else value)  # NumPy asks bfloat16 without axes in vain


def _is_array(value: Any) -> bool:
    dtype = getattr(value, "dtype", None)
    return value is None or (dtype is not None and dtype not in (tf.resource, tf.variant))
