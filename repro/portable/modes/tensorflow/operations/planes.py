"""Convolutions of int16 as products of matrices, by kernels: what meets a kernel is a row, for some samples at a time."""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from repro.portable.backends.numpy import Array
from repro.portable.compiler.numpy import integers
from repro.portable.compiler.numpy.copies import contiguous
from repro.portable.compiler.numpy.integers import multiply
from repro.portable.compiler.numpy.plan import run
from repro.portable.definitions.grids import check_length
from repro.portable.modes.tensorflow.operations.steps import Steps

if TYPE_CHECKING or integers.available:
    from repro.portable.kernels.patches import Windows, patches

BLOCK = 2**21
"""Numbers of a matrix of rows: 4 MB."""
STEP = 4
"""Rows are as long as a multiple of it, which the products ask for."""


def _rows(x: Array, windows: "Windows") -> Iterator[tuple[slice, Array]]:
    """Samples, and of these what meets a kernel: int16 [samples outputs, taps I and zeros]."""
    terms, places = math.prod(windows.taps) * x.shape[-1], math.prod(windows.out)
    columns = -(-terms // STEP) * STEP
    some = max(1, BLOCK // max(1, places * columns))
    for begin in range(0, len(x), some):
        part = slice(begin, min(len(x), begin + some))
        samples = np.ascontiguousarray(x[part])
        if columns == x.shape[-1] and windows.out == windows.sizes and set(windows.strides) == {1}:
            yield part, samples.reshape(-1, columns)  # of one tap
            continue
        loops = integers.made(patches, len(samples), x.shape[-1], windows, columns)
        yield part, integers.called(loops, (samples.size, loops.work), np.int16, 1, samples).reshape(-1, columns)


def _windows(sizes: Sequence[int], taps: Sequence[int], outputs: Sequence[int], how: Steps) -> "Windows":
    low = tuple(before for before, _ in how.edges)
    return Windows(tuple(sizes), tuple(outputs), tuple(taps), how.stride, how.dilation, low, (1,) * len(taps))


def _correlated(x: Array, w: Array, windows: "Windows", units: Array | None) -> Array:
    terms = math.prod(w.shape[:-1])
    check_length(terms)
    right = w.reshape(1, terms, -1)
    if terms % STEP:
        right = np.zeros((1, -(-terms // STEP) * STEP, w.shape[-1]), np.int16)
        right[0, :terms] = w.reshape(terms, -1)
    y = integers.empty((len(x), *windows.out, w.shape[-1]), np.float64 if units is None else np.float32)
    for some, rows in _rows(x, windows):
        each = units
        if each is not None:
            each = np.broadcast_to(each[some, None], (len(each[some]), math.prod(windows.out)))
            each = contiguous(each).reshape(-1)
        multiply(rows[None], right, units=each, into=y[some])
    return y


def correlated(q: Array, w: Array, how: Steps, units: Array | None = None) -> Array:
    """[B, ..., I] and [taps ..., I, O] -> float64 [B, ..., O]; with a power of two for each sample, float32: rounded."""
    taps, sizes = w.shape[:-2], q.shape[1:-1]
    return _correlated(q, w, _windows(sizes, taps, how.outputs(sizes, taps), how), units)


def gradient_of_images(g: Array, w: Array, shape: Sequence[int], how: Steps, units: Array | None = None) -> Array:
    """The convolution, with the kernel flipped, of the gradient with zeros between its numbers."""
    taps, axes = w.shape[:-2], range(w.ndim - 2)
    turned = contiguous(w[tuple(slice(None, None, -1) for _ in taps)].swapaxes(-1, -2))
    low = tuple(how.dilation[axis] * (taps[axis] - 1) - how.edges[axis][0] for axis in axes)
    ones = (1,) * len(taps)
    windows = Windows(g.shape[1:-1], tuple(shape[1:-1]), taps, ones, how.dilation, low, how.stride)
    return _correlated(g, turned, windows, units)


def gradient_of_weight(q: Array, g: Array, shape: Sequence[int], how: Steps) -> Array:
    *taps, inputs, outputs = shape
    terms = math.prod(taps) * inputs
    check_length(math.prod(g.shape[:-1]))
    gradient = None
    for some, rows in _rows(q, _windows(q.shape[1:-1], taps, g.shape[1:-1], how)):
        part = multiply(rows[None], g[some].reshape(1, len(rows), outputs), a_turned=True)[0][:terms]
        gradient = part if gradient is None else run((), _added, gradient, part)
    return np.zeros(shape) if gradient is None else gradient.reshape(shape)


def _added(xp: Any, a: Array, b: Array) -> Array:
    return a + b
