"""Convolutions of any number of dimensions, with their gradients.

What meets a kernel is the row of a matrix, for some samples at a time. All sums are exact, so their order is free.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from repro.portable.backends.numpy import Array, Backend
from repro.portable.compiler.numpy import integers
from repro.portable.compiler.numpy.plan import run
from repro.portable.definitions import doubles
from repro.portable.definitions.grids import check_length, product_of_slices, scaled, sliced
from repro.portable.modes.tensorflow.dispatcher.dispatch import Attributes, define
from repro.portable.modes.tensorflow.dispatcher.types import as_float32, cast_back
from repro.portable.modes.tensorflow.operations import planes
from repro.portable.modes.tensorflow.operations.steps import Steps, back, last, steps
from repro.portable.numbers import precisions
from repro.portable.numbers.constants import BITS

BLOCK = 2**21
"""Numbers of a matrix of rows."""
Multiply = Callable[[Array, Array], Array]


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
    """Where each channel has weights of its own: [taps ..., 1, I M]."""
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


def _slices(x: Array, axes: tuple[int, ...], paired: bool) -> tuple[list[Array], Array]:
    """Those of an operand, int16 where kernels multiply pairs."""
    x = np.ascontiguousarray(x)
    return integers.quantized(x, axes, precisions.slices) if paired else run(axes, sliced, x, axes, precisions.slices)


def _dense(x: Array, w: Array) -> bool:
    """Whether each output is a sum over all channels."""
    return x.shape[-1] == w.shape[-2]


def _multiplied(
    a: Array, b: Array, groups: tuple[tuple[int, ...], ...], terms: int, multiply: Multiply, dense: bool
) -> tuple:
    """The sums of products of two operands with grids along these axes, in units of the scales that come with it."""
    if a.dtype == np.float64:
        return doubles.product(Backend, a, b, (groups[0], groups[1]), terms, multiply)
    paired = integers.fits(terms) and dense
    (first, p), (second, s) = (_slices(x, axes, paired) for x, axes in zip((a, b), groups, strict=True))
    return product_of_slices(Backend, multiply, first, second), p, s


def _result(dtype: np.dtype, total: Array, *scales: Array) -> Array:
    if dtype == np.float64:
        return math.prod(scales[1:], start=total * scales[0])
    axes = tuple(range(1, total.ndim - 1)) if scales[0].shape[0] == len(total) > 1 else tuple(range(total.ndim - 1))
    return run(axes, _rounded, total, *scales)


def _rounded(xp: Any, total: Array, *scales: Array) -> Array:
    return xp.r32(scaled(xp, total, 2 * BITS, *scales))


def _at_once(dtype: np.dtype, terms: int, dense: bool) -> bool:
    """Whether the sums are rounded by the kernels that make them."""
    return dtype == np.float32 and integers.fits(terms) and dense and precisions.slices == 1


def _in_units(x: Array, w: Array, groups: tuple[tuple[int, ...], ...]) -> tuple[Array, Array, Array]:
    """Both operands, int16, and the unit of each sample's sums."""
    ((q,), p), ((weights,), s) = (_slices(each, axes, True) for each, axes in zip((x, w), groups, strict=True))
    return q, weights, (p.astype(np.float64) * s.reshape((1,) * p.ndim) * 2.0 ** (-2 * BITS)).reshape(-1)


def forward(x: Array, w: Array, how: Steps) -> Array:
    """A grid for each sample, one for the weight."""
    groups, terms = (_rest(x, 0), tuple(range(w.ndim))), math.prod(w.shape[:-1])
    if _at_once(x.dtype, terms, _dense(x, w)):
        a, b, units = _in_units(x, w, groups)
        return planes.correlated(a, b, how, units)
    total, p, s = _multiplied(x, w, groups, terms, lambda a, b: correlated(a, b, how), _dense(x, w))
    return _result(x.dtype, total, p, s.reshape((1,) * x.ndim))


def images(g: Array, w: Array, shape: Sequence[int], how: Steps) -> Array:
    groups = _rest(g, 0), tuple(range(w.ndim))
    terms = math.prod(w.shape) // w.shape[-2]
    if _at_once(g.dtype, terms, shape[-1] == w.shape[-2]):
        a, b, units = _in_units(g, w, groups)
        return planes.gradient_of_images(a, b, shape, how, units)
    total, r, s = _multiplied(
        g, w, groups, terms, lambda a, b: gradient_of_images(a, b, shape, how), shape[-1] == w.shape[-2]
    )
    return _result(g.dtype, total, r, s.reshape((1,) * g.ndim))


def weight(x: Array, g: Array, shape: Sequence[int], how: Steps) -> Array:
    """x keeps the grids of its samples: their scales go into the gradient, which then has a grid for each output."""

    def multiply(a: Array, b: Array) -> Array:
        return gradient_of_weight(a, b, shape, how)

    terms, outputs = math.prod(g.shape[:-1]), (*(1,) * (len(shape) - 1), -1)
    if x.dtype == np.float64:
        whole = tuple(range(x.ndim))
        total, p, r = _multiplied(x, g, (whole, _rest(g, -1)), terms, multiply, False)
        return _result(x.dtype, total, p.reshape((1,) * len(shape)), r.reshape(outputs))
    paired = integers.fits(terms) and x.shape[-1] == shape[-2]
    q, p = _slices(x, _rest(x, 0), paired)
    h, r = _slices(g * p, _rest(g, -1), paired)
    total = product_of_slices(Backend, multiply, q, h)
    return _result(x.dtype, total, r.reshape(outputs))


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

    @define(name)
    def convolved(given: Attributes, x: Array, w: Array) -> Array:
        dtype, x, w = x.dtype, as_float32(x), as_float32(w)
        channels = "first" if given.get("data_format", "").startswith("NC") else "last"
        x = last(x, channels)
        how, _ = steps(given, x.shape[1:-1], w.shape[:-2])
        kernel = _flat(w) if depthwise else w
        shape = (len(x), *how.outputs(x.shape[1:-1], w.shape[:-2]), kernel.shape[-1])
        if 0 in shape or not x.size:
            return back(np.zeros(shape, dtype), channels)
        return cast_back(back(forward(x, kernel, how), channels), dtype)

    @define(backprop[0])
    def of_images(given: Attributes, sizes: Array, w: Array, g: Array) -> Array:
        dtype, w, g = g.dtype, as_float32(w), as_float32(g)
        channels = "first" if given.get("data_format", "").startswith("NC") else "last"
        shape = _shape(sizes)
        shape = (shape[0], *shape[2:], shape[1]) if channels == "first" else shape
        how, _ = steps(given, shape[1:-1], w.shape[:-2])
        if not g.size or 0 in shape:
            return back(np.zeros(shape, dtype), channels)
        kernel = _flat(w) if depthwise else w
        return cast_back(back(images(last(g, channels), kernel, shape, how), channels), dtype)

    @define(backprop[1])
    def of_filter(given: Attributes, x: Array, sizes: Array, g: Array) -> Array:
        dtype, x, g = g.dtype, as_float32(x), as_float32(g)
        channels = "first" if given.get("data_format", "").startswith("NC") else "last"
        x, shape = last(x, channels), _shape(sizes)
        how, _ = steps(given, x.shape[1:-1], shape[:-2])
        if not g.size or not x.size:
            return np.zeros(shape, dtype)
        flat = (*shape[:-2], 1, shape[-2] * shape[-1]) if depthwise else shape
        return cast_back(weight(x, last(g, channels), flat, how).reshape(shape), dtype)


for _name in ("Conv2D", "Conv3D", "DepthwiseConv2dNative"):
    _operation(_name, depthwise=_name.startswith("Depthwise"))
