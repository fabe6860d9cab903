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
from repro.portable.modes.jax.operations.functions import evaluate


def _of_positive(function: Callable[..., Any]) -> Callable[..., Array]:
    """NaN of a parameter that is not positive, but for x = 0, as JAX has it."""
    return lambda a, x, **_: jnp.where((a > 0) | (x == 0), evaluate(function, a, x), jnp.nan)


define("igamma")(_of_positive(incomplete.igamma))
define("igammac")(_of_positive(incomplete.igammac))
define("igamma_grad_a")(_of_positive(incomplete.igamma_slope))


def _rounded(*arrays: Array) -> Array:
    y = special.regularized_incomplete_beta_impl(*(x.astype(jnp.float64) for x in arrays), dtype=jnp.float64)
    return jnp.clip(y, 0.0, 1.0).astype(arrays[0].dtype)


@rule("regularized_incomplete_beta")
def incomplete_beta(_: Any, ctx: Any, *arrays: Any) -> Any:
    with exactly():
        return mlir.lower_fun(_rounded, multiple_results=False)(ctx, *arrays)
