"""Exact products under XLA: methods of two backends.

JAX's and TensorFlow's backends have these functions as classmethods. A product is made of float64, of slices of int8,
or by kernels of int16, whichever the matmul backend is; a convolution that is plain, with the batch last, of float64 is
one matrix product.
"""

import math
from typing import Any

from repro.portable import kernels
from repro.portable.definitions import convolution, slices
from repro.portable.definitions.convolution import OUTPUTS_FIRST, OUTPUTS_LAST, plain
from repro.portable.definitions.defaults import Defaults
from repro.portable.definitions.grids import check_length
from repro.portable.definitions.xp import Array, Axes, XlaBackend

if kernels.available:
    from repro.portable.kernels import calls, products
    from repro.portable.kernels.convolution import Convolution


def operands(xp: XlaBackend, a: Array, b: Array, work: int, groups: int = 1, layout: str = "") -> tuple[Array, Array]:
    if not xp.calls_kernels():
        return a, b
    if products.fit(a.shape, b.shape[0], layout):
        return xp.int16(a), xp.int16(b)
    return (xp.f64(a), xp.f64(b)) if layout else (a, b)


def matmul(xp: XlaBackend, a: Array, b: Array) -> Array:
    if "int16" in str(a.dtype):
        return calls.multiply(xp, a, b)
    return slices.product(xp, a, b) if xp.engine == "int8" else xp.f64(a) @ xp.f64(b)


def rounded_matmul(xp: XlaBackend, a: Array, b: Array, units: Array, plus: Array | None) -> Array:
    return calls.multiply(xp, a, b, units, plus)


def convolve(xp: XlaBackend, q: Array, w: Array, *how: Any) -> Array:
    if "float32" not in str(q.dtype):
        return calls.convolve(xp, q, w, Convolution(*how))
    if xp.engine == "int8" or not plain(*how):
        return convolution.convolve(xp, q, w, *how)
    check_length(math.prod(w.shape[1:]))
    return xp.correlate(xp.f64(q), xp.permute(xp.f64(w), OUTPUTS_LAST))


def convolve_with(xp: XlaBackend, q: Array, g: Array, shape: Axes, *how: Any) -> Array:
    if "float32" not in str(q.dtype):
        return calls.convolve_with(xp, q, g, shape, Convolution(*how))
    if xp.engine == "int8" or not plain(*how):
        return convolution.convolve_with(xp, q, g, shape, *how)
    check_length(math.prod(g.shape[1:]) * xp.ranks.size)
    return xp.permute(xp.correlate_with(xp.f64(q), xp.f64(g)), OUTPUTS_FIRST)


def convolve_back(xp: XlaBackend, g: Array, w: Array, image: Axes, *how: Any) -> Array:
    if "float32" not in str(g.dtype):
        stride, _, dilation, *_ = how
        if all(1 in pair for pair in zip(stride, dilation, strict=True)):
            return calls.convolve_back(xp, g, w, image, Convolution(*how))
        g, w = xp.f32(g), xp.f32(w)
    if xp.engine == "int8" or not plain(*how):
        return convolution.convolve_back(xp, g, w, image, *how)
    check_length(math.prod(w.shape[:3]))
    return xp.spread(xp.f64(g), xp.permute(xp.f64(w), OUTPUTS_LAST))


def rounded_convolve(xp: XlaBackend, q: Array, w: Array, unit: Array, plus: Array | None, *how: Any) -> Array:
    if "float32" in str(q.dtype):
        return Defaults.rounded_convolve(xp, q, w, unit, plus, *how)
    return calls.convolve(xp, q, w, Convolution(*how), *([unit] if plus is None else [unit, plus]))


def rounded_convolve_back(xp: XlaBackend, g: Array, w: Array, image: Axes, unit: Array, *how: Any) -> Array:
    if "float32" in str(g.dtype) or how[0] != (1, 1):  # of several parts
        return Defaults.rounded_convolve_back(xp, g, w, image, unit, *how)
    return calls.convolve_back(xp, g, w, image, Convolution(*how), unit)
