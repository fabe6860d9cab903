"""The functions of the files beside this one, by name."""

from collections.abc import Callable
from typing import Any

from repro.portable.definitions.functions import (
    bessel,
    errors,
    exponential,
    gamma,
    hyperbolic,
    incomplete,
    inverse,
    logarithmic,
    powers,
    quantiles,
    trigonometric,
    zeta,
)

FILES = (
    bessel,
    errors,
    exponential,
    gamma,
    hyperbolic,
    incomplete,
    inverse,
    logarithmic,
    powers,
    quantiles,
    trigonometric,
    zeta,
)
FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: function
    for file in FILES
    for name, function in vars(file).items()
    if getattr(function, "__module__", None) == file.__name__ and not name.startswith("_")
}
