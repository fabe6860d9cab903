"""Complex numbers, whose parts are float32 or float64."""

import math
from collections.abc import Callable

import numpy as np

from repro.portable.backends.numpy import Array, Backend
from repro.portable.definitions import complex_functions, complexes, sums
from repro.portable.definitions.complexes import Pair
from repro.portable.modes.tensorflow.dispatcher.dispatch import Attributes, define_complex
from repro.portable.modes.tensorflow.dispatcher.types import axes_of
from repro.portable.modes.tensorflow.operations import products
from repro.portable.modes.tensorflow.operations import sums as scans


def parts(x: Array) -> Pair:
    """The real and the imaginary part, of the type that they have."""
    return np.ascontiguousarray(x.real), np.ascontiguousarray(x.imag)


def wide(x: Array) -> Pair:
    """The parts in float64."""
    return x.real.astype(np.float64), x.imag.astype(np.float64)


def joined(pair: Pair, dtype: np.dtype) -> Array:
    """Complex numbers of a type, of parts that are rounded to it."""
    result = np.empty(np.broadcast_shapes(*(each.shape for each in pair)), dtype)
    result.real, result.imag = pair
    return result


# --- one number, or two -----------------------------------------------------------------------------------------------


@define_complex("Mul")
def multiply(given: Attributes, x: Array, y: Array) -> Array:
    return joined(complexes.times(Backend, wide(x), wide(y)), x.dtype)


@define_complex("RealDiv", "Div")
def divide(given: Attributes, x: Array, y: Array) -> Array:
    return joined(complexes.over(Backend, wide(x), wide(y)), x.dtype)


@define_complex("DivNoNan")
def divide_or_zero(given: Attributes, x: Array, y: Array) -> Array:
    return np.where(y == 0, np.zeros((), x.dtype), divide(given, x, y))


@define_complex("Square")
def square(given: Attributes, x: Array) -> Array:
    return multiply(given, x, x)


@define_complex("Reciprocal", "Inv")
def reciprocal(given: Attributes, x: Array) -> Array:
    return divide(given, np.ones_like(x), x)


@define_complex("ReciprocalGrad", "InvGrad")
def reciprocal_gradient(given: Attributes, y: Array, gradient: Array) -> Array:
    return multiply(given, -gradient, square(given, y.conj()))


@define_complex("SqrtGrad")
def root_gradient(given: Attributes, y: Array, gradient: Array) -> Array:
    return divide(given, gradient / 2, y.conj())


@define_complex("AddN")
def add_all(given: Attributes, *terms: Array) -> Array:
    return sum(terms[1:], terms[0])


def _real(definition: Callable[..., Array]) -> Callable[..., Array]:
    return lambda _, x: definition(Backend, wide(x)).astype(x.real.dtype)


def _complex(definition: Callable[..., Pair]) -> Callable[..., Array]:
    return lambda _, x: joined(definition(Backend, wide(x)), x.dtype)


define_complex("ComplexAbs")(_real(complexes.size))
define_complex("Angle")(_real(complexes.angle))
for _name, _function in complex_functions.OF_ONE.items():
    define_complex(_name.capitalize())(_complex(_function))


@define_complex("Pow")
def power(given: Attributes, x: Array, exponent: Array) -> Array:
    pairs = (wide(each) for each in np.broadcast_arrays(x, exponent))
    return joined(complex_functions.power(Backend, *pairs), x.dtype)


@define_complex("TanhGrad")
def tanh_gradient(given: Attributes, y: Array, gradient: Array) -> Array:
    """The gradient of tanh, of whose result y TensorFlow gives the conjugate."""
    return multiply(given, gradient, 1 - square(given, y))


@define_complex("SigmoidGrad")
def sigmoid_gradient(given: Attributes, y: Array, gradient: Array) -> Array:
    return multiply(given, gradient, multiply(given, y, 1 - y))


@define_complex("RsqrtGrad")
def inverse_root_gradient(given: Attributes, y: Array, gradient: Array) -> Array:
    return multiply(given, gradient / -2, multiply(given, y.conj(), square(given, y.conj())))


# --- sums and products of matrices ------------------------------------------------------------------------------------


def _summed(x: Array, axes: tuple[int, ...], factor: float = 1.0) -> Array:
    """The sum, with axes of size 1, times a factor."""
    pair = (sums.as_type_of(Backend, sums.exact(Backend, each, axes) * factor, each) for each in parts(x))
    return joined(tuple(pair), x.dtype)


def _along(x: Array, axes: tuple[int, ...], keep: bool, factor: float = 1.0) -> Array:
    result = _summed(x, axes, factor) if axes else x.copy()
    return result if keep else result.squeeze(axes)


@define_complex("Sum")
def total(given: Attributes, x: Array, axes: Array) -> Array:
    return _along(x, axes_of(axes, x.ndim), given["keep_dims"])


@define_complex("Mean")
def mean(given: Attributes, x: Array, axes: Array) -> Array:
    named = axes_of(axes, x.ndim)
    terms = math.prod(x.shape[axis] for axis in named)
    return _along(x, named, given["keep_dims"], 1.0 / terms if terms else math.nan)


@define_complex("Cumsum")
def cumsum(given: Attributes, x: Array, axis: Array) -> Array:
    real, imaginary = (scans.cumsum(given, each, axis) for each in parts(x))
    return joined((real, imaginary), x.dtype)


def _cumulative_product(x: Array, axis: int) -> Array:
    pair = complexes.cumulative(Backend, wide(np.moveaxis(x, axis, -1)))
    return np.moveaxis(joined(pair, x.dtype), -1, axis)


define_complex("Cumprod")(scans.scan(_cumulative_product, 1.0))


@define_complex("Prod")
def product_along(given: Attributes, x: Array, axes: Array) -> Array:
    named = axes_of(axes, x.ndim)
    rest = [axis for axis in range(x.ndim) if axis not in named]
    rows = x.transpose(*rest, *named).reshape(*(x.shape[axis] for axis in rest), math.prod(x.shape[i] for i in named))
    if not rows.shape[-1]:
        rows = np.ones((*rows.shape[:-1], 1), x.dtype)
    result = joined(complexes.product(Backend, wide(rows)), x.dtype)
    kept = [1 if axis in named else n for axis, n in enumerate(x.shape)]
    return result.reshape(kept if given["keep_dims"] else result.shape[:-1])


def product(a: Array, b: Array, slices: int) -> Array:
    """[..., M, K] and [..., K, N] -> [..., M, N]: both parts of a row, or of a column, have one grid."""
    if not a.size or not b.size:
        outer = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        return np.zeros((*outer, a.shape[-2], b.shape[-1]), a.dtype)
    return joined(complexes.matmul(Backend, parts(a), parts(b), slices), a.dtype)


@define_complex("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def matmul(given: Attributes, a: Array, b: Array, slices: int) -> Array:
    """`adj` transposes and takes the conjugates, `transpose` does not."""
    a, b = _turned(a, given, "transpose_a", "adj_x"), _turned(b, given, "transpose_b", "adj_y")
    products.checked(a, b)
    return product(a, b, slices)


def _turned(x: Array, given: Attributes, transpose: str, adjoint: str) -> Array:
    if given.get(adjoint):
        return x.swapaxes(-1, -2).conj()
    return x.swapaxes(-1, -2) if given.get(transpose) else x


@define_complex("Einsum")
def einsum(given: Attributes, *operands: Array, slices: int) -> Array:
    return products.einsum_by(given, list(operands), _summed, lambda a, b, _: product(a, b, slices))
