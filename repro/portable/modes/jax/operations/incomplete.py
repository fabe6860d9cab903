"""Incomplete gamma and beta functions: JAX's own formulas, in float64, rounded once.

Their series and fractions are made of primitives that are portable themselves. A share that they give is brought between 0
and 1, where they leave that: by their last digits, and wholly where parameters are so large that no digit is right.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from jax import Array
from jax import numpy as jnp
from jax._src.interpreters import mlir
from jax._src.lax import special

from repro.portable.modes.jax.dispatcher.gate import exactly
from repro.portable.modes.jax.dispatcher.registry import rule

FORMULAS: dict[str, Callable[..., Array]] = {
    "igamma": special.igamma_impl,
    "igammac": special.igammac_impl,
    "igamma_grad_a": special.igamma_grad_a_impl,
    "regularized_incomplete_beta": special.regularized_incomplete_beta_impl,
}


SHARES = ("igamma", "igammac", "regularized_incomplete_beta")


def _rounded(name: str, dtype: Any, *arrays: Array) -> Array:
    y = FORMULAS[name](*(x.astype(jnp.float64) for x in arrays), dtype=jnp.float64)
    return (jnp.clip(y, 0.0, 1.0) if name in SHARES else y).astype(dtype)


def _in_float64(name: str) -> Callable[..., Any]:
    def lowered(_: Any, ctx: Any, *arrays: Any) -> Any:
        function = partial(_rounded, name, ctx.avals_out[0].dtype)
        with exactly():
            return mlir.lower_fun(function, multiple_results=False)(ctx, *arrays)

    return lowered


for _name in FORMULAS:
    rule(_name)(_in_float64(_name))
