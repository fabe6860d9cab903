"""Functions of each element, and their gradients as TensorFlow has them."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from repro.portable.backends.numpy import Array, Backend
from repro.portable.compiler.numpy import elements
from repro.portable.definitions import activations, functions
from repro.portable.definitions.functions import beta, cylinders, incomplete, logarithmic, powers, zeta
from repro.portable.definitions.functions.table import FUNCTIONS
from repro.portable.kernels.numpy.programs import Unheard
from repro.portable.modes.tensorflow.dispatcher.dispatch import Attributes, define
from repro.portable.modes.tensorflow.dispatcher.types import as_float32, cast_back


def evaluate(function: Callable[..., Any], *arrays: Array, **options: Any) -> Array:
    """A function of repro.portable.definitions of arrays of one type, which is that of the result; they broadcast."""
    dtype, wide = arrays[0].dtype, [as_float32(each) for each in arrays]
    return cast_back(elements.run(functions.rounded(function), *wide, **options), dtype)


def _of_elements(function: Callable[..., Any], **options: Any) -> Callable[..., Array]:
    return lambda given, *arrays: evaluate(function, *arrays, **options)


NAMES = """
    Exp Expm1 Log Log1p Rsqrt Sin Cos Tan Asin Acos Atan Atan2 Sinh Cosh Tanh Sigmoid Asinh Acosh Atanh
    Erf Erfc Erfinv Ndtri Lgamma Digamma
"""
"""Functions that have their names here in TensorFlow, too, but for the first letter."""
RENAMED = {"i0": "BesselI0", "i0e": "BesselI0e", "i1": "BesselI1", "i1e": "BesselI1e"}
for _name, _theirs in ({each.lower(): each for each in NAMES.split()} | RENAMED).items():
    define(_theirs, reads=())(_of_elements(FUNCTIONS[_name]))
for _name in ("j0", "j1"):
    define(f"Bessel{_name.upper()}", reads=())(_of_elements(getattr(cylinders, _name)))


def _with_left(function: Callable[..., Any], left: float) -> Callable[..., Any]:
    """Of numbers below 0 the limit at 0, as TensorFlow has it."""
    return lambda xp, x, bits=53: xp.where(x < 0.0, left, function(xp, x, bits))


for _name in ("y0", "y1", "k0", "k1", "k0e", "k1e"):
    _left = _with_left(getattr(cylinders, _name), -math.inf if _name[0] == "y" else math.inf)
    define(f"Bessel{_name[0].upper()}{_name[1:]}", reads=())(_of_elements(_left))
define("Elu", reads=())(_of_elements(activations.elu))
define("Softplus", reads=())(_of_elements(activations.softplus, threshold=math.inf))

ALPHA, SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
"""SELU's: G. Klambauer et al., 1706.02515."""
define("Selu", reads=())(_of_elements(activations.elu, alpha=ALPHA, scale=SCALE))


def _of_series(function: Callable[..., Any]) -> Callable[..., Array]:
    """A function of elements, which broadcast. It is not compiled: its loops are long."""

    def computed(given: Attributes, *arrays: Array) -> Array:
        wide = np.broadcast_arrays(*map(as_float32, arrays))
        flat = [np.ascontiguousarray(each).reshape(-1) for each in wide]
        result = functions.rounded(function)(Backend, *flat) if flat[0].size else flat[0]
        return cast_back(result.reshape(wide[0].shape), arrays[0].dtype)

    return computed


def _of_positive(function: Callable[..., Any]) -> Callable[..., Any]:
    """NaN of a parameter that is not positive, but for x = 0, as TensorFlow has it."""
    return lambda xp, a, x, bits=53: xp.where((a > 0.0) | (x == 0.0), function(xp, a, x, bits), xp.nan)


define("Igamma")(_of_series(_of_positive(incomplete.igamma)))
define("Igammac")(_of_series(_of_positive(incomplete.igammac)))
define("IgammaGradA")(_of_series(_of_positive(incomplete.igamma_slope)))


def _share(xp: Any, a: Array, b: Array, x: Array, bits: int = 53) -> Array:
    """NaN of parameters that are 0 or infinite, but for x = 0 and x = 1, as TensorFlow has it."""
    inside = (a > 0.0) & (b > 0.0)
    usual = inside & (a < xp.inf) & (b < xp.inf)
    at_end = inside & ((x == 0.0) | (x == 1.0))
    return xp.where(at_end, x, xp.where(usual, beta.share(xp, a, b, x, bits), xp.nan))


define("Betainc")(_of_series(_share))
define("RandomGammaGrad")(_of_series(incomplete.gamma_slope))
define("Zeta")(_of_series(zeta.zeta))
define("Polygamma")(_of_series(zeta.polygamma))


# --- gradients --------------------------------------------------------------------------------------------------------
# TensorFlow gives either the gradient or the result first.


@define("TanhGrad", reads=())
def tanh_gradient(given: Attributes, y: Array, gradient: Array) -> Array:
    return evaluate(activations.tanh_backward, gradient, y)


@define("SigmoidGrad", reads=())
def sigmoid_gradient(given: Attributes, y: Array, gradient: Array) -> Array:
    return evaluate(activations.sigmoid_backward, gradient, y)


@define("SoftplusGrad", reads=())
def softplus_gradient(given: Attributes, gradient: Array, x: Array) -> Array:
    return evaluate(activations.softplus_backward, gradient, x, threshold=math.inf)


def _elu_gradient(xp: Any, gradient: Array, y: Array, alpha: float = 1.0, scale: float = 1.0, bits: int = 53) -> Array:
    """From the result; at 0 and of NaN it is that of positive numbers."""
    return xp.where(y < 0.0, gradient * (y + alpha * scale), gradient * scale)


def _root_gradient(xp: Any, y: Array, gradient: Array, bits: int = 53) -> Array:
    return xp.where(gradient == 0.0, 0.0, gradient * 0.5 / y)


def _inverse_root_gradient(xp: Any, y: Array, gradient: Array, bits: int = 53) -> Array:
    return xp.where(gradient == 0.0, 0.0, _times(xp, gradient * -0.5, y * y * y, gradient * -0.5 * y * y * y))


def _times(xp: Any, a: Array, power: Array, factor_by_factor: Array) -> Array:
    """a times a power of float64, which may be too large or too small where the product is not."""
    return xp.where((_size(xp, power) > 2.0**-1000) & (_size(xp, power) < 2.0**1000), a * power, factor_by_factor)


def _inverse(xp: Any, x: Array, bits: int = 53) -> Array:
    return 1.0 / x


def _inverse_gradient(xp: Any, y: Array, gradient: Array, bits: int = 53) -> Array:
    return xp.where(gradient == 0.0, 0.0, _times(xp, -gradient, y * y, -gradient * y * y))


def _softsign(xp: Any, x: Array, bits: int = 53) -> Array:
    return x / (_size(xp, x) + 1.0)


def _softsign_gradient(xp: Any, gradient: Array, x: Array, bits: int = 53) -> Array:
    below = _size(xp, x) + 1.0
    return gradient / (below * below)


def _size(xp: Any, x: Array) -> Array:
    return xp.where(x < 0.0, -x, x)


def _x_log(logarithm: Callable[..., Any]) -> Callable[..., Any]:
    """x log y: 0 where x is 0, also of NaN."""
    return lambda xp, x, y, bits=53: xp.where(x == 0.0, 0.0, x * logarithm(xp, y, bits))


OTHERS: dict[tuple[str, ...], Callable[..., Any]] = {
    ("EluGrad",): _elu_gradient,
    ("SqrtGrad",): _root_gradient,
    ("RsqrtGrad",): _inverse_root_gradient,
    ("Inv", "Reciprocal"): _inverse,
    ("InvGrad", "ReciprocalGrad"): _inverse_gradient,
    ("Softsign",): _softsign,
    ("SoftsignGrad",): _softsign_gradient,
    ("Xlogy",): _x_log(logarithmic.log),
    ("Xlog1py",): _x_log(logarithmic.log1p),
}
define("SeluGrad", reads=())(_of_elements(_elu_gradient, alpha=ALPHA, scale=SCALE))
for _names, _function in OTHERS.items():
    define(*_names, reads=())(_of_elements(_function))


# --- powers -----------------------------------------------------------------------------------------------------------

WHOLE: dict[float, Callable[[Any, Array], Array]] = {
    1.0: lambda xp, x: x,
    2.0: lambda xp, x: x * x,
    3.0: lambda xp, x: x * x * x,
    -1.0: lambda xp, x: 1.0 / x,
    0.5: functions.rounded(powers.sqrt),
    -0.5: functions.rounded(powers.rsqrt),
}
"""Powers of exponents that are one number for all."""


def _power_of_one(xp: Any, x: Array, exponent: Array) -> Array:
    """A power of one number: an optimizer's, whose exponent is another one at each step."""
    result = functions.rounded(powers.power)(xp, x, exponent)
    for known, function in WHOLE.items():
        result = xp.where(exponent == known, function(xp, x), result)
    return result


@define("Pow", reads=())
def power(given: Attributes, x: Array, exponent: Array) -> Array:
    dtype = x.dtype
    x, exponent = as_float32(x), as_float32(exponent)
    if exponent.ndim:
        return cast_back(evaluate(powers.power, *np.broadcast_arrays(x, exponent)), dtype)
    if x.size == 1:
        return cast_back(elements.run(_power_of_one, x, exponent), dtype)
    if float(exponent) == 1:
        return cast_back(x.copy(), dtype)
    with Unheard():  # other exponents have other kernels
        if float(exponent) in WHOLE:
            return cast_back(elements.run(WHOLE[float(exponent)], x), dtype)
        return cast_back(evaluate(powers.power, *np.broadcast_arrays(x, exponent)), dtype)


@define("Range")
def numbers(given: Attributes, start: Array, limit: Array, delta: Array) -> Array:
    """start + i delta, the product rounded first. How many there are is computed in their type."""
    first, step, length = (
        as_float32(start),
        as_float32(delta),
        cast_back(as_float32(limit) - as_float32(start), start.dtype),
    )
    if not step or as_float32(length) / step < 0:
        raise ValueError(f"range from {float(start)} to {float(limit)} by {float(delta)} is none")
    number = float(cast_back(as_float32(length) / step, start.dtype))
    count = np.arange(math.ceil(abs(number)))
    return cast_back(first + step * count.astype(first.dtype), start.dtype)


@define("LinSpace")
def spaced(given: Attributes, start: Array, stop: Array, number: Array) -> Array:
    """start + i step, the product rounded first, and the last one as it is given."""
    if int(number) < 1:
        raise ValueError(f"{int(number)} numbers are none")
    begin, end = as_float32(start), as_float32(stop)
    step = (end - begin) / begin.dtype.type(max(1, int(number) - 1))
    result = begin + step * np.arange(int(number)).astype(begin.dtype)
    if int(number) > 1:
        result[-1] = end
    return cast_back(result, start.dtype)
