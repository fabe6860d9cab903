"""Conversion of floating-point numbers to integers, with one result where they do not fit, too.

C++ leaves it undefined what becomes of a number that a type cannot hold: it depends on the instructions, and so on the place of a number in
its array and on the number of threads.
"""

import numpy as np
from tensorflow.python.framework import dtypes

from repro.portable.backends.numpy import Array
from repro.portable.modes.tensorflow.dispatcher.dispatch import CONVERSION, Attributes, define
from repro.portable.modes.tensorflow.dispatcher.types import as_float32


@define(CONVERSION)
def to_integers(given: Attributes, x: Array) -> Array:
    """Towards zero; what is beyond the ends of a type is its end, NaN is 0."""
    ends, x = dtypes.as_dtype(given["DstT"]), as_float32(x)
    low, high = float(ends.min), float(ends.max)  # of 64 bits, and of 32 in float32, the next power of two
    if x.size and low < x.min() and x.max() < high:
        return x.astype(ends.as_numpy_dtype)
    below, above = x <= low, x >= high
    result = np.where(below | above | np.isnan(x), 0, x).astype(ends.as_numpy_dtype)
    result[below], result[above] = ends.min, ends.max
    return result
