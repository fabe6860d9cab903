"""Arrays in a row."""

import numpy as np

from repro.portable import kernels
from repro.portable.backends.numpy import Array
from repro.portable.kernels.numpy.programs import listening

if kernels.available:
    from repro.portable.kernels.numpy.copies import copy
    from repro.portable.kernels.numpy.threads import empty


def contiguous(x: Array, into: Array | None = None) -> Array:
    """An array whose numbers lie in a row, or these numbers in another such array. Within a program a kernel copies them."""
    if into is None and x.flags.c_contiguous:
        return x
    if listening.recorder is None or not x.size:
        if into is None:
            return np.ascontiguousarray(x)
        into[...] = x
        return into
    result = empty(x.shape, x.dtype) if into is None else into
    copy(x, result)
    return result


def copied(x: Array) -> Array:
    """A copy that shares no memory."""
    return contiguous(x, empty(x.shape, x.dtype)) if listening.recorder is not None else x.copy()


def reshaped(x: Array, shape: tuple[int, ...]) -> Array:
    """An array with another shape, copied where it must be."""
    result = x.view()
    try:
        result.shape = shape
    except AttributeError:  # it is not in the order that this asks for
        return contiguous(x).reshape(shape)
    return result
