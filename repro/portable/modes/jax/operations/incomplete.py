"""Incomplete gamma functions, and the incomplete beta function by JAX's own formula in float64, rounded once.

The series and fractions of the latter are made of primitives that are portable themselves. A share is brought between 0
and 1, where it leaves that: by its last digits, and wholly where parameters are so large that no digit is right.
"""

from collections.abc import Callable
from typing import Any

from jax import Array
from jax import numpy as jnp
from jax._src.interpreters import mlir
from jax._src.lax import special

from repro.portable.definitions.functions import incomplete
from repro.portable.modes.jax.dispatcher.gate import exactly
from repro.portable.modes.jax.dispatcher.registry import define, rule
from repro.portable.modes.jax.operations.functions import of_elements


def _of_normal(function: Callable[..., Array]) -> Callable[..., Array]:
    """Numbers that are 0 to XLA as 0: LLVM may ask for their bits where the definition compares them twice."""

    def computed(*arrays: Array, **_: Any) -> Array:
        least = 2.0**-1022 if arrays[0].dtype == jnp.float64 else 2.0**-126
        return function(*(jnp.where(jnp.abs(x) < least, 0.0, x) for x in arrays))

    return computed


for _name, _function in {
    "igamma": incomplete.igamma,
    "igammac": incomplete.igammac,
    "igamma_grad_a": incomplete.igamma_slope,
}.items():
    define(_name)(_of_normal(of_elements(_function)))


def _rounded(*arrays: Array) -> Array:
    y = special.regularized_incomplete_beta_impl(*(x.astype(jnp.float64) for x in arrays), dtype=jnp.float64)
    return jnp.clip(y, 0.0, 1.0).astype(arrays[0].dtype)


@rule("regularized_incomplete_beta")
def incomplete_beta(_: Any, ctx: Any, *arrays: Any) -> Any:
    with exactly():
        return mlir.lower_fun(_rounded, multiple_results=False)(ctx, *arrays)
