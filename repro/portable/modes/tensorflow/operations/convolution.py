"""Convolutions of any number of dimensions, with their gradients.

What meets a kernel is the row of a matrix, for some samples at a time. All sums are exact, so their order is free.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from repro.portable.backends.numpy import Array
from repro.portable.compiler.numpy import integers
from repro.portable.compiler.numpy.plan import run
from repro.portable.definitions.grids import check_length, operand_bits, product_of_slices, rounded, sliced
from repro.portable.modes.tensorflow.dispatcher.dispatch import Attributes, define
from repro.portable.modes.tensorflow.dispatcher.types import as_float32, cast_back
from repro.portable.modes.tensorflow.operations import planes
from repro.portable.modes.tensorflow.operations.steps import Steps, back, last, steps

BLOCK = 2**21
"""Numbers of a matrix of rows."""


# --- exact sums of integers -------------------------------------------------------------------------------------------
# Images [B, ..., I], weights [taps ..., I / groups, O]. Results are float64.


def _blocks(batch: int, each: int) -> Iterator[slice]:
    some = max(1, BLOCK // max(1, each))
    return (slice(begin, min(batch, begin + some)) for begin in range(0, batch, some))


def _matrices(x: Array, how: Steps, taps: Sequence[int], outputs: Sequence[int], groups: int) -> Iterator:
    """Samples, and of these what meets a kernel: float64 [groups, samples outputs, taps I / groups]."""
    padded, each = how.padded(x), math.prod(outputs) * math.prod(taps) * x.shape[-1]
    for some in _blocks(len(x), each):
        rows = how.windows(padded[some], taps, outputs)
        rows = rows.reshape(-1, math.prod(taps), groups, x.shape[-1] // groups)
        yield some, rows.transpose(2, 0, 1, 3).reshape(groups, len(rows), -1).astype(np.float64)


def _by_group(w: Array, groups: int) -> Array:
    """float64 [groups, taps I / groups, O / groups]."""
    return w.reshape(-1, groups, w.shape[-1] // groups).transpose(1, 0, 2).astype(np.float64)


def correlated(q: Array, w: Array, how: Steps) -> Array:
    if q.dtype == np.int16:
        return planes.correlated(q, w, how)
    taps, groups = w.shape[:-2], q.shape[-1] // w.shape[-2]
    check_length(math.prod(w.shape[:-1]))
    outputs = how.outputs(q.shape[1:-1], taps)
    if w.shape[-2] == 1:
        return _depthwise(q, w, how, outputs)
    y = np.empty((len(q), *outputs, w.shape[-1]))
    right = _by_group(w, groups)
    for some, rows in _matrices(q, how, taps, outputs, groups):
        y[some] = np.matmul(rows, right).transpose(1, 0, 2).reshape(y[some].shape)
    return y


def _depthwise(q: Array, w: Array, how: Steps, outputs: Sequence[int]) -> Array:
    """A convolution in which each channel has weights of its own: [taps ..., 1, I M]."""
    x, channels = how.padded(q).astype(np.float64), q.shape[-1]
    y = np.zeros((len(q), *outputs, channels, w.shape[-1] // channels))
    weights = w.reshape(*w.shape[:-2], channels, -1).astype(np.float64)
    for tap in np.ndindex(*w.shape[:-2]):
        y += how.met(x, tap, outputs)[..., None] * weights[tap]
    return y.reshape(*y.shape[:-2], -1)


def gradient_of_images(g: Array, w: Array, shape: Sequence[int], how: Steps) -> Array:
    """The gradient with respect to images of this shape, that of the result being g."""
    if g.dtype == np.int16:
        return planes.gradient_of_images(g, w, shape, how)
    *taps, inputs, outputs = w.shape
    groups = shape[-1] // inputs
    check_length(math.prod(taps) * outputs)
    sides = [size + sum(edge) for size, edge in zip(shape[1:-1], how.edges, strict=True)]
    gradient = np.zeros((shape[0], *sides, shape[-1]))
    right, places = _by_group(w, groups).swapaxes(-1, -2), g.shape[1:-1]
    for some in _blocks(len(g), math.prod(places) * math.prod(taps) * shape[-1]):
        rows = g[some].reshape(-1, groups, outputs // groups).transpose(1, 0, 2).astype(np.float64)
        parts = np.matmul(rows, right).reshape(groups, -1, *places, *taps, inputs)
        parts = np.moveaxis(parts, 0, -2).reshape(-1, *places, *taps, shape[-1])
        for tap in np.ndindex(*taps):
            met = how.met(gradient[some], tap, places)
            met += parts[(slice(None),) * (1 + len(places)) + tap]
    return how.inner(gradient)


def gradient_of_weight(q: Array, g: Array, shape: Sequence[int], how: Steps) -> Array:
    """The gradient with respect to a weight of this shape, that of the result being g."""
    if q.dtype == np.int16:
        return planes.gradient_of_weight(q, g, shape, how)
    *taps, inputs, outputs = shape
    groups, places = q.shape[-1] // inputs, g.shape[1:-1]
    check_length(math.prod(g.shape[:-1]))
    gradient = np.zeros((groups, math.prod(taps) * inputs, outputs // groups))
    for some, rows in _matrices(q, how, taps, places, groups):
        right = g[some].reshape(-1, groups, outputs // groups).transpose(1, 0, 2).astype(np.float64)
        gradient += np.matmul(rows.swapaxes(-1, -2), right)
    return gradient.transpose(1, 0, 2).reshape(shape)


# --- numbers ----------------------------------------------------------------------------------------------------------


def _rest(x: Array, axis: int) -> tuple[int, ...]:
    return tuple(each for each in range(x.ndim) if each != axis % x.ndim)


def _slices(x: Array, axes: tuple[int, ...], bits: int, paired: bool, slices: int) -> tuple[list[Array], Array]:
    """The slices of an operand, int16 where kernels multiply pairs."""
    x = np.ascontiguousarray(x)
    if paired:
        return integers.quantized(x, axes, slices)
    return run(axes, sliced, x, axes, slices, bits=bits)


def _paired(x: Array, terms: int, dense: bool) -> bool:
    """True if kernels multiply pairs; `dense`: each output is a sum over all channels."""
    return integers.fits(x, terms) and dense


def _result(total: Array, bits: int, *scales: Array) -> Array:
    axes = tuple(range(1, total.ndim - 1)) if scales[0].shape[0] == len(total) > 1 else tuple(range(total.ndim - 1))
    return run(axes, rounded, total, 2 * bits, *scales)


def _units(xp: Any, p: Array, s: Array, bits: int) -> Array:
    return xp.f64(p) * xp.f64(s) * 2.0 ** (-2 * bits)


def _product(
    x: Array,
    w: Array,
    terms: int,
    dense: bool,
    slices: int,
    multiply: Callable[..., Array],
    at_once: Callable[..., Array],
) -> Array:
    """A sum of products: x has a grid for each sample, the weight has one.

    `at_once` gives it for operands of int16 and the unit of each sample's sums: rounded by the kernels that make it.
    """
    bits, paired = operand_bits(x, terms), _paired(x, terms, dense)
    (q, p), (v, s) = (
        _slices(x, _rest(x, 0), bits, paired, slices),
        _slices(w, tuple(range(w.ndim)), bits, paired, slices),
    )
    s = s.reshape((1,) * x.ndim)
    if paired and len(q) == 1:
        return at_once(q[0], v[0], run((), _units, p, s, bits).reshape(-1))
    return _result(product_of_slices(multiply, q, v, bits), bits, p, s)


def forward(x: Array, w: Array, how: Steps, slices: int) -> Array:
    return _product(
        x,
        w,
        math.prod(w.shape[:-1]),
        x.shape[-1] == w.shape[-2],
        slices,
        lambda a, b: correlated(a, b, how),
        lambda a, b, units: planes.correlated(a, b, how, units),
    )


def images(g: Array, w: Array, shape: Sequence[int], how: Steps, slices: int) -> Array:
    return _product(
        g,
        w,
        math.prod(w.shape) // w.shape[-2],
        shape[-1] == w.shape[-2],
        slices,
        lambda a, b: gradient_of_images(a, b, shape, how),
        lambda a, b, units: planes.gradient_of_images(a, b, shape, how, units),
    )


def _times(xp: Any, x: Array, y: Array) -> Array:
    return x * y


def weight(x: Array, g: Array, shape: Sequence[int], how: Steps, slices: int) -> Array:
    """x keeps the grids of its samples: their scales go into the gradient, which then has a grid for each output."""
    terms = math.prod(g.shape[:-1])
    bits, paired = operand_bits(x, terms), _paired(x, terms, x.shape[-1] == shape[-2])
    q, p = _slices(x, _rest(x, 0), bits, paired, slices)
    by_samples = run((-1,), _times, np.ascontiguousarray(g).reshape(len(g), -1), p.reshape(-1, 1))
    h, r = _slices(by_samples.reshape(g.shape), _rest(g, -1), bits, paired, slices)
    total = product_of_slices(lambda a, b: gradient_of_weight(a, b, shape, how), q, h, bits)
    return _result(total, bits, r.reshape((*(1,) * (len(shape) - 1), -1)))


# --- operations -------------------------------------------------------------------------------------------------------


def _flat(w: Array) -> Array:
    """A depthwise filter [taps ..., I, M] as one of I groups: [taps ..., 1, I M]."""
    return w.reshape(*w.shape[:-2], 1, -1)


def _shape(sizes: Array) -> tuple[int, ...]:
    return tuple(map(int, sizes))


def _operation(name: str, depthwise: bool) -> None:
    backprop = {"Conv3D": ("Conv3DBackpropInputV2", "Conv3DBackpropFilterV2")}.get(
        name, (f"{name}BackpropInput", f"{name}BackpropFilter")
    )

    @define(name, reads=())
    def convolved(given: Attributes, x: Array, w: Array, slices: int) -> Array:
        dtype, x, w = x.dtype, as_float32(x), as_float32(w)
        channels = "first" if given.get("data_format", "").startswith("NC") else "last"
        x = last(x, channels)
        how, _ = steps(given, x.shape[1:-1], w.shape[:-2])
        kernel = _flat(w) if depthwise else w
        shape = (len(x), *how.outputs(x.shape[1:-1], w.shape[:-2]), kernel.shape[-1])
        if 0 in shape or not x.size:
            return back(np.zeros(shape, dtype), channels)
        return cast_back(back(forward(x, kernel, how, slices), channels), dtype)

    @define(backprop[0], reads=(0,))
    def of_images(given: Attributes, sizes: Array, w: Array, g: Array, slices: int) -> Array:
        dtype, w, g = g.dtype, as_float32(w), as_float32(g)
        channels = "first" if given.get("data_format", "").startswith("NC") else "last"
        shape = _shape(sizes)
        shape = (shape[0], *shape[2:], shape[1]) if channels == "first" else shape
        how, _ = steps(given, shape[1:-1], w.shape[:-2])
        if not g.size or 0 in shape:
            return back(np.zeros(shape, dtype), channels)
        kernel = _flat(w) if depthwise else w
        return cast_back(back(images(last(g, channels), kernel, shape, how, slices), channels), dtype)

    @define(backprop[1], reads=(1,))
    def of_filter(given: Attributes, x: Array, sizes: Array, g: Array, slices: int) -> Array:
        dtype, x, g = g.dtype, as_float32(x), as_float32(g)
        channels = "first" if given.get("data_format", "").startswith("NC") else "last"
        x, shape = last(x, channels), _shape(sizes)
        how, _ = steps(given, x.shape[1:-1], shape[:-2])
        if not g.size or not x.size:
            return np.zeros(shape, dtype)
        flat = (*shape[:-2], 1, shape[-2] * shape[-1]) if depthwise else shape
        return cast_back(weight(x, last(g, channels), flat, how, slices).reshape(shape), dtype)


for _name in ("Conv2D", "Conv3D", "DepthwiseConv2dNative"):
    _operation(_name, depthwise=_name.startswith("Depthwise"))
