"""Functions of each element."""

from collections.abc import Callable
from typing import Any

from jax import Array

from repro.portable.backends.jax import Backend
from repro.portable.definitions import functions
from repro.portable.definitions.functions import powers
from repro.portable.definitions.functions.table import FUNCTIONS
from repro.portable.modes.jax.dispatcher.registry import define
from repro.portable.modes.jax.operations import calls

NAMES = """
    exp exp2 expm1 log log1p rsqrt cbrt sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh
    erf erfc lgamma digamma zeta polygamma
"""
"""Functions that have their names here in JAX, too."""
RENAMED = {"sigmoid": "logistic", "erfinv": "erf_inv", "i0e": "bessel_i0e", "i1e": "bessel_i1e"}


def evaluate(function: Callable[..., Any], *arrays: Array, **options: Any) -> Array:
    """A function of repro.portable.definitions of arrays of one type: of float64 in float64, of others in float32."""
    return calls.held(functions.rounded(function)(Backend, *arrays, **options))


def of_elements(function: Callable[..., Any]) -> Callable[..., Array]:
    def computed(*arrays: Array, **_: Any) -> Array:
        return evaluate(function, *arrays)

    return computed


for _name, _theirs in ({each: each for each in NAMES.split()} | RENAMED).items():
    define(_theirs)(of_elements(FUNCTIONS[_name]))


@define("pow")
def power(x: Array, exponent: Array) -> Array:
    """x to an exponent of the same type, or to an integer."""
    return evaluate(powers.power, x, exponent.astype(x.dtype))
