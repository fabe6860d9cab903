"""JAX's primitives of eigenvalues and singular values: signatures of the definitions."""

from typing import Any

from jax import Array
from jax import numpy as jnp

from repro.portable.backends.jax import Backend
from repro.portable.definitions import spectral
from repro.portable.modes.jax.dispatcher.registry import define, guard


@guard("eigh", "svd")
def _subset(_: Any, *, subset_by_index: Any = None, **__: Any) -> str:
    return "" if subset_by_index is None else "some of the values have no portable form, without all of them"


@define("eigh")
def eigh(x: Array, *, lower: bool, **_: Any) -> tuple[Array, Array]:
    return spectral.eigh(Backend, x.astype(jnp.float64), lower)


@define("svd")
def svd(x: Array, *, full_matrices: bool, compute_uv: bool, **_: Any) -> tuple[Array, ...]:
    left, values, right = spectral.svd(Backend, x.astype(jnp.float64), full_matrices)
    return (values, left, right) if compute_uv else (values,)
