"""Incomplete gamma and beta functions, and derivatives of the former."""

from collections.abc import Callable
from typing import Any

from jax import Array
from jax import numpy as jnp

from repro.portable.definitions.functions import beta, incomplete
from repro.portable.modes.jax.dispatcher.registry import define
from repro.portable.modes.jax.operations.functions import of_elements


def _of_normal(function: Callable[..., Array]) -> Callable[..., Array]:
    """Numbers that are 0 to XLA as 0: LLVM may ask for their bits where the definition compares them twice."""

    def computed(*arrays: Array, **_: Any) -> Array:
        if not arrays[0].size:
            return arrays[0]
        least = 2.0**-1022 if arrays[0].dtype == jnp.float64 else 2.0**-126
        return function(*(jnp.where(jnp.abs(x) < least, 0.0, x) for x in arrays))

    return computed


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "igamma": incomplete.igamma,
    "igammac": incomplete.igammac,
    "igamma_grad_a": incomplete.igamma_slope,
    "regularized_incomplete_beta": beta.share,
}
for _name, _function in FUNCTIONS.items():
    define(_name)(_of_normal(of_elements(_function)))
