"""Complex numbers, whose parts are float32 or float64."""

import math
from collections.abc import Callable
from functools import partial, reduce
from typing import Any

from jax import Array, lax
from jax import numpy as jnp

from repro.portable.backends.jax import Backend
from repro.portable.definitions import complex_functions, complexes, sums
from repro.portable.definitions.complexes import Pair
from repro.portable.modes.jax.dispatcher.registry import define_complex
from repro.portable.modes.jax.operations import convolution, products, scatter
from repro.portable.modes.jax.operations import sums as scans


def parts(x: Array) -> Pair:
    """The real and the imaginary part, of the type that they have."""
    return (lax.real(x), lax.imag(x)) if jnp.iscomplexobj(x) else (x, jnp.zeros_like(x))


def wide(x: Array) -> Pair:
    """The parts in float64."""
    real, imaginary = parts(x)
    return real.astype(jnp.float64), imaginary.astype(jnp.float64)


def joined(pair: Pair, dtype: Any) -> Array:
    """Complex numbers of a type, of parts that are rounded to it."""
    real = jnp.float32 if dtype == jnp.complex64 else jnp.float64
    return lax.complex(*(each.astype(real) for each in pair))


# --- one number, or two -----------------------------------------------------------------------------------------------


@define_complex("mul")
def multiply(x: Array, y: Array, **_: Any) -> Array:
    return joined(complexes.times(Backend, wide(x), wide(y)), x.dtype)


@define_complex("div")
def divide(x: Array, y: Array, **_: Any) -> Array:
    return joined(complexes.over(Backend, wide(x), wide(y)), x.dtype)


@define_complex("square")
def square(x: Array) -> Array:
    return multiply(x, x)


@define_complex("integer_pow")
def integer_power(x: Array, *, y: int) -> Array:
    """Products of the number with itself, from left to right."""
    if not y:
        return jnp.ones_like(x)
    result = reduce(multiply, [x] * abs(y))
    return result if y > 0 else divide(jnp.ones_like(x), result)


def _real(definition: Callable[..., Array]) -> Callable[..., Array]:
    return lambda x, **_: definition(Backend, wide(x)).astype(parts(x)[0].dtype)


def _complex(definition: Callable[..., Pair]) -> Callable[..., Array]:
    return lambda x, **_: joined(definition(Backend, wide(x)), x.dtype)


define_complex("abs")(_real(complexes.size))
for _name, _function in complex_functions.OF_ONE.items():
    define_complex("logistic" if _name == "sigmoid" else _name)(_complex(_function))


@define_complex("pow")
def power(x: Array, exponent: Array) -> Array:
    return joined(complex_functions.power(Backend, wide(x), wide(exponent)), x.dtype)


# --- sums and products of matrices ------------------------------------------------------------------------------------


@define_complex("reduce_sum")
def reduce_sum(x: Array, *, axes: tuple[int, ...], **_: Any) -> Array:
    if not axes:
        return x
    real, imaginary = (jnp.squeeze(sums.total(Backend, each, axes), axes) for each in parts(x))
    return joined((real, imaginary), x.dtype)


@define_complex("reduce_prod")
def reduce_prod(x: Array, *, axes: tuple[int, ...], **_: Any) -> Array:
    rest = [axis for axis in range(x.ndim) if axis not in axes]
    shape = [*(x.shape[axis] for axis in rest), math.prod(x.shape[axis] for axis in axes)]
    if not shape[-1]:
        return jnp.ones(shape[:-1], x.dtype)
    return joined(complexes.product(Backend, wide(x.transpose(*rest, *axes).reshape(shape))), x.dtype)[..., 0]


@define_complex("cumsum")
def cumsum(x: Array, *, axis: int, reverse: bool) -> Array:
    real, imaginary = (scans.cumsum(each, axis=axis, reverse=reverse) for each in parts(x))
    return joined((real, imaginary), x.dtype)


@define_complex("cumprod")
def cumprod(x: Array, *, axis: int, reverse: bool) -> Array:
    turned = jnp.moveaxis(jnp.flip(x, axis) if reverse else x, axis, -1)
    result = jnp.moveaxis(joined(complexes.cumulative(Backend, wide(turned)), x.dtype), -1, axis)
    return jnp.flip(result, axis) if reverse else result


@define_complex("scatter_add")
def scatter_add(operand: Array, indices: Array, updates: Array, **how: Any) -> Array:
    pairs = zip(parts(operand), parts(updates), strict=True)
    real, imaginary = (scatter.scatter_add(each, indices, added, **how) for each, added in pairs)
    return joined((real, imaginary), operand.dtype)


@define_complex("dot_general")
def dot_general(
    lhs: Array, rhs: Array, *, dimension_numbers: Any, precision: Any = None, slices: int, **_: Any
) -> Array:
    """Both parts of a row of the first, or of a column of the second, have one grid."""
    dtype = jnp.result_type(lhs, rhs)
    a, b, shape = products.as_matrices(lhs.astype(dtype), rhs.astype(dtype), dimension_numbers)
    if not lhs.size or not rhs.size:
        return jnp.zeros(shape, dtype)
    pair = complexes.matmul(Backend, parts(a), parts(b), products.slices_of(precision, slices))
    return joined(pair, dtype).reshape(shape)


@define_complex("conv_general_dilated")
def conv_general_dilated(lhs: Array, rhs: Array, *, slices: int, **how: Any) -> Array:
    """Four convolutions of the parts, each rounded."""
    dtype = jnp.result_type(lhs, rhs)
    (a, b), (c, d) = parts(lhs.astype(dtype)), parts(rhs.astype(dtype))
    convolve = partial(convolution.conv_general_dilated, slices=slices, **how)
    return joined((convolve(a, c) - convolve(b, d), convolve(a, d) + convolve(b, c)), dtype)
