"""Convolutions of int16 as products of matrices, by kernels: what meets a kernel is a row, for some samples at a time."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from repro.portable.operations.grids import check_length
from repro.portable.tensorflow.mode.backend import Array
from repro.portable.tensorflow.mode.integers import multiply
from repro.portable.tensorflow.mode.steps import Steps

BLOCK = 2**21
"""Numbers of a matrix of rows: 4 MB."""
STEP = 4
"""Rows are as long as a multiple of it, which the products ask for."""


def _rows(x: Array, how: Steps, taps: Sequence[int], outputs: Sequence[int]) -> Iterator[tuple[slice, Array]]:
    """Samples, and of these what meets a kernel: int16 [samples outputs, taps I and zeros]."""
    padded, terms, places = how.padded(x), math.prod(taps) * x.shape[-1], math.prod(outputs)
    columns = -(-terms // STEP) * STEP
    some = max(1, BLOCK // max(1, places * columns))
    for begin in range(0, len(x), some):
        part = slice(begin, min(len(x), begin + some))
        number = (part.stop - part.start) * places
        if math.prod(taps) == 1 and columns == terms:
            yield part, np.ascontiguousarray(how.windows(padded[part], taps, outputs)).reshape(number, terms)
            continue
        matrix = (np.empty if columns == terms else np.zeros)((number, columns), np.int16)
        inside = matrix[:, :terms].reshape(part.stop - part.start, *outputs, *taps, x.shape[-1])
        if columns != terms:  # no view has these axes
            matrix[:, :terms] = how.windows(padded[part], taps, outputs).reshape(number, terms)
        else:
            np.copyto(inside, how.windows(padded[part], taps, outputs))
        yield part, matrix


def correlated(q: Array, w: Array, how: Steps) -> Array:
    """[B, ..., I] and [taps ..., I, O] -> float64 [B, ..., O]."""
    taps, outputs = w.shape[:-2], how.outputs(q.shape[1:-1], w.shape[:-2])
    terms = math.prod(w.shape[:-1])
    check_length(terms)
    right = np.zeros((1, -(-terms // STEP) * STEP, w.shape[-1]), np.int16)
    right[0, :terms] = w.reshape(terms, -1)
    y = np.empty((len(q), *outputs, w.shape[-1]))
    for some, rows in _rows(q, how, taps, outputs):
        y[some] = multiply(rows[None], right)[0].reshape(y[some].shape)
    return y


def gradient_of_images(g: Array, w: Array, shape: Sequence[int], how: Steps) -> Array:
    """As the convolution, with the kernel turned around, of the gradient between zeros."""
    *taps, _, outputs = w.shape
    check_length(math.prod(taps) * outputs)
    sizes, spread, edges = shape[1:-1], [], []
    for size, step, (before, _), hole, tap, places in zip(
        sizes, how.stride, how.edges, how.dilation, taps, g.shape[1:-1], strict=True
    ):
        reach = hole * (tap - 1)
        long = (places - 1) * step + 1
        spread.append(long)
        edges.append((reach - before, size + before - long))
    if any(step > 1 for step in how.stride):
        wide = np.zeros((len(g), *spread, g.shape[-1]), np.int16)
        wide[:, *(slice(None, None, step) for step in how.stride)] = g
        g = wide
    # An edge below 0 cuts numbers off.
    cut = [(max(0, -before), n - max(0, -after)) for (before, after), n in zip(edges, spread, strict=True)]
    g = g[:, *(slice(begin, end) for begin, end in cut)]
    around = tuple((max(0, before), max(0, after)) for before, after in edges)
    turned = np.ascontiguousarray(w[tuple(slice(None, None, -1) for _ in taps)].swapaxes(-1, -2))
    return correlated(g, turned, Steps((1,) * len(taps), around, how.dilation))


def gradient_of_weight(q: Array, g: Array, shape: Sequence[int], how: Steps) -> Array:
    *taps, inputs, outputs = shape
    places, terms = g.shape[1:-1], math.prod(taps) * inputs
    check_length(math.prod(g.shape[:-1]))
    found = np.zeros((terms, outputs))
    for some, rows in _rows(q, how, taps, places):
        found += multiply(rows[None], g[some].reshape(1, len(rows), outputs), a_turned=True)[0][:terms]
    return found.reshape(shape)
