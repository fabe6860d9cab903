"""Incomplete gamma and beta functions: JAX's own formulas, in float64, rounded once.

Their series and fractions are made of primitives that are portable themselves.
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


def _rounded(formula: Callable[..., Array], dtype: Any, *arrays: Array) -> Array:
    return formula(*(x.astype(jnp.float64) for x in arrays), dtype=jnp.float64).astype(dtype)


def _in_float64(formula: Callable[..., Array]) -> Callable[..., Any]:
    def lowered(_: Any, ctx: Any, *arrays: Any) -> Any:
        function = partial(_rounded, formula, ctx.avals_out[0].dtype)
        with exactly():
            return mlir.lower_fun(function, multiple_results=False)(ctx, *arrays)

    return lowered


for _name, _formula in FORMULAS.items():
    rule(_name)(_in_float64(_formula))
