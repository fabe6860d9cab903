"""Convolutions of any axes, as products of matrices.

What meets the kernel is copied into the rows of a matrix: out[o] meets x[o stride + t dilation] for each tap t.
"""

import itertools
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from jax import Array, lax
from jax import numpy as jnp

from repro.portable.backends.jax import Backend
from repro.portable.definitions.grids import operand_bits, product, product_of_slices, rounded, sliced
from repro.portable.modes.jax.dispatcher.registry import define
from repro.portable.modes.jax.dispatcher.types import of_one_type
from repro.portable.modes.jax.operations import calls, products
from repro.portable.numbers.constants import BITS

MOST_COPIES = 64
"""Slices of the images that are put side by side; where there are more, numbers are taken by their index."""


@define("conv_general_dilated")
def conv_general_dilated(
    lhs: Array,
    rhs: Array,
    *,
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int],
    rhs_dilation: Sequence[int],
    dimension_numbers: Any,
    feature_group_count: int,
    batch_group_count: int,
    precision: Any = None,
    slices: int,
    **_: Any,
) -> Array:
    """Images have a grid for each sample, the kernel has one."""
    images, kernel, out = dimension_numbers
    x = lhs.transpose(images[0], *images[2:], images[1])
    w = rhs.transpose(*kernel[2:], kernel[1], kernel[0])
    x, w = of_one_type(x, w)
    edges = [(0, 0, 0), *((*pair, hole - 1) for pair, hole in zip(padding, lhs_dilation, strict=True)), (0, 0, 0)]
    taps = w.shape[:-2]
    sizes = [
        (size + low + high + max(0, size - 1) * hole - (tap - 1) * step - 1) // stride + 1
        for size, (low, high, hole), tap, step, stride in zip(
            x.shape[1:-1], edges[1:-1], taps, rhs_dilation, window_strides, strict=True
        )
    ]
    back = np.argsort([out[0], *out[2:], out[1]])
    shape = (x.shape[0] // batch_group_count, *(max(0, size) for size in sizes), w.shape[-1])
    if not math.prod(shape) or not x.size or not w.size:
        return jnp.zeros(shape, x.dtype).transpose(back)
    groups = max(feature_group_count, batch_group_count)
    prepare = partial(_rows, edges=edges, taps=taps, sizes=sizes, strides=window_strides, steps=rhs_dilation)
    split = partial(_split, groups=groups, by_batch=batch_group_count > 1)
    terms = math.prod(taps) * w.shape[-2]
    slices, bits = products.slices_of(precision, slices), operand_bits(x, terms)
    if slices == groups == 1 and calls.multiplies(x, math.prod(shape[:-1]), terms, shape[-1]):
        return _by_kernels(x, w, shape, edges, taps, window_strides, rhs_dilation).transpose(back)

    def multiply(a: Array, b: Array) -> Array:
        return product(Backend, split(prepare(a)), _by_groups(b, groups), bits=bits)

    q, p = sliced(Backend, x, tuple(range(1, x.ndim)), slices, bits=bits)
    v, s = sliced(Backend, w, tuple(range(w.ndim)), slices, bits=bits)
    scales = split(_of_rows(p, sizes, feature_group_count)), s.reshape(())
    y = rounded(Backend, product_of_slices(multiply, q, v, bits), 2 * bits, *scales)
    y = y.reshape(groups, shape[0], *shape[1:-1], w.shape[-1] // groups)
    return jnp.moveaxis(y, 0, -2).reshape(shape).transpose(back)


def _by_kernels(
    x: Array,
    w: Array,
    shape: tuple[int, ...],
    edges: Sequence[tuple[int, int, int]],
    taps: Sequence[int],
    strides: Sequence[int],
    steps: Sequence[int],
) -> Array:
    """A convolution of float32 as one product of matrices of int16."""
    samples, terms, sizes = x.shape[0], math.prod(w.shape[:-1]), shape[1:-1]
    q, p = calls.quantized(x.reshape(samples, -1), math.prod(x.shape[1:]))
    low, dilations = [low for low, _, _ in edges[1:-1]], [hole + 1 for _, _, hole in edges[1:-1]]
    given = (x.shape[1:-1], sizes, taps, strides, steps, low, dilations)
    width = terms + terms % 2
    rows = calls.patches(q.reshape(x.shape), calls.Windows(*(tuple(map(int, each)) for each in given)), width)
    v, s = calls.panels_of_one_grid(w.reshape(terms, -1))
    units = jnp.repeat(p.astype(jnp.float64) * (s.astype(jnp.float64) * 2.0 ** (-2 * BITS)), math.prod(sizes))
    return calls.one_grid(rows, v, units[:, None], shape[-1]).reshape(shape)


def _by_groups(w: Array, groups: int) -> Array:
    """[taps, I, G N] -> [G, taps I, N]."""
    return w.reshape(math.prod(w.shape[:-1]), groups, -1).transpose(1, 0, 2)


def _split(rows: Array, groups: int, by_batch: bool) -> Array:
    """[B, positions, taps, C] -> [G, samples positions, taps I]: groups of samples, or of channels."""
    batch, positions, taps, channels = rows.shape
    if by_batch:
        return rows.reshape(groups, batch // groups * positions, taps * channels)
    each = channels // groups
    rows = rows.reshape(batch * positions, taps, groups, each)
    return rows.transpose(2, 0, 1, 3).reshape(groups, batch * positions, taps * each)


def _of_rows(p: Array, sizes: Sequence[int], channels: int) -> Array:
    """Scales of samples, [B, 1, ...], as numbers of rows, of one tap, for each group."""
    return jnp.broadcast_to(p.reshape(-1, 1, 1, 1), (p.size, math.prod(sizes), 1, channels))


def _rows(
    x: Array,
    edges: Sequence[tuple[int, int, int]],
    taps: Sequence[int],
    sizes: Sequence[int],
    strides: Sequence[int],
    steps: Sequence[int],
) -> Array:
    """The patches that meet the kernel: [B, ..., C] -> [B, positions, taps, C]."""
    x = lax.pad(x, jnp.zeros((), x.dtype), edges)
    batch, channels = x.shape[0], x.shape[-1]

    def part(at: Sequence[int], counts: Sequence[int], apart: Sequence[int]) -> Array:
        ends = (start + (count - 1) * step + 1 for start, count, step in zip(at, counts, apart, strict=True))
        return lax.slice(x, (0, *at, 0), (batch, *ends, channels), (1, *apart, 1))

    if math.prod(taps) <= min(math.prod(sizes), MOST_COPIES):
        parts = [part(at, sizes, strides).reshape(batch, -1, 1, channels) for at in _places(taps, steps)]
        return jnp.concatenate(parts, 2)
    if math.prod(sizes) <= MOST_COPIES:
        parts = [part(at, taps, steps).reshape(batch, 1, -1, channels) for at in _places(sizes, strides)]
        return jnp.concatenate(parts, 1)
    index = np.zeros((1, 1), np.int64)
    for length, count, stride, tap, step in zip(x.shape[1:-1], sizes, strides, taps, steps, strict=True):
        met = np.arange(count)[:, None] * stride + np.arange(tap) * step
        index = index[:, None, :, None] * length + met[None, :, None, :]
        index = index.reshape(index.shape[0] * count, -1)
    return x.reshape(batch, -1, channels)[:, jnp.asarray(index)]


def _places(counts: Sequence[int], steps: Sequence[int]) -> list[tuple[int, ...]]:
    return list(itertools.product(*(range(0, count * step, step) for count, step in zip(counts, steps, strict=True))))
