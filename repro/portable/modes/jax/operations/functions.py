"""Functions of each element."""

from collections.abc import Callable
from typing import Any

from jax import Array

from repro.portable.backends.jax import Backend
from repro.portable.definitions import functions
from repro.portable.definitions.functions import (
    bessel,
    errors,
    exponential,
    gamma,
    hyperbolic,
    inverse,
    logarithmic,
    powers,
    quantiles,
    trigonometric,
    zeta,
)
from repro.portable.modes.jax.dispatcher.gate import define

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "exp": exponential.exp,
    "exp2": exponential.exp2,
    "expm1": exponential.expm1,
    "log": logarithmic.log,
    "log1p": logarithmic.log1p,
    "rsqrt": powers.rsqrt,
    "cbrt": powers.cbrt,
    "sin": trigonometric.sin,
    "cos": trigonometric.cos,
    "tan": trigonometric.tan,
    "asin": inverse.asin,
    "acos": inverse.acos,
    "atan": inverse.atan,
    "atan2": inverse.atan2,
    "sinh": hyperbolic.sinh,
    "cosh": hyperbolic.cosh,
    "tanh": exponential.tanh,
    "logistic": exponential.sigmoid,
    "asinh": hyperbolic.asinh,
    "acosh": hyperbolic.acosh,
    "atanh": hyperbolic.atanh,
    "erf": errors.erf,
    "erfc": errors.erfc,
    "erf_inv": quantiles.erfinv,
    "lgamma": gamma.lgamma,
    "digamma": gamma.digamma,
    "zeta": zeta.zeta,
    "polygamma": zeta.polygamma,
    "bessel_i0e": bessel.i0e,
    "bessel_i1e": bessel.i1e,
}


def evaluate(function: Callable[..., Any], *arrays: Array, **options: Any) -> Array:
    """A function of repro.portable.definitions of arrays of one type: of float64 in float64, of others in float32."""
    return functions.rounded(function)(Backend, *arrays, **options)


def _of_elements(function: Callable[..., Any]) -> Callable[..., Array]:
    def computed(*arrays: Array, **_: Any) -> Array:
        return evaluate(function, *arrays)

    return computed


for _name, _function in FUNCTIONS.items():
    define(_name)(_of_elements(_function))


@define("pow")
def power(x: Array, exponent: Array) -> Array:
    """x to an exponent of the same type, or to an integer."""
    return evaluate(powers.power, x, exponent.astype(x.dtype))
