"""JAX's primitives of linear algebra: signatures of the definitions."""

from typing import Any

from jax import Array
from jax import numpy as jnp

from repro.portable.backends.jax import Backend
from repro.portable.definitions import linalg
from repro.portable.modes.jax.dispatcher.registry import define


@define("cholesky")
def cholesky(x: Array, **_: Any) -> Array:
    return linalg.only_definite(Backend, linalg.cholesky(Backend, x.astype(jnp.float64)))


@define("triangular_solve")
def triangular_solve(
    a: Array,
    b: Array,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    unit_diagonal: bool,
    **_: Any,
) -> Array:
    """x with a x = b, or x a = b."""
    a, b = a.astype(jnp.float64), b.astype(jnp.float64)
    if transpose_a != (not left_side):  # x a = b is a^T x^T = b^T
        a, lower = jnp.swapaxes(a, -1, -2), not lower
    x = linalg.triangular_solve(Backend, a, b if left_side else jnp.swapaxes(b, -1, -2), lower, unit_diagonal)
    return x if left_side else jnp.swapaxes(x, -1, -2)


@define("qr")
def qr(x: Array, *, full_matrices: bool, pivoting: bool = False, **_: Any) -> tuple[Array, Array]:
    if pivoting:
        raise NotImplementedError("portable numerics: qr with pivoting has no portable form; use pivoting=False")
    return linalg.qr(Backend, x.astype(jnp.float64), full_matrices)


@define("lu")
def lu(x: Array, **_: Any) -> tuple[Array, Array, Array]:
    return linalg.lu(Backend, x.astype(jnp.float64))


@define("geqrf")
def reflections(x: Array, **_: Any) -> tuple[Array, Array]:
    return linalg.reflections(Backend, x.astype(jnp.float64))


@define("householder_product")
def householder_product(a: Array, taus: Array, **_: Any) -> Array:
    a, taus = a.astype(jnp.float64), taus.astype(jnp.float64)
    return linalg.reflected(Backend, a, taus, linalg.identity(Backend, a, *a.shape[-2:]))


@define("ormqr")
def multiply_reflections(a: Array, taus: Array, c: Array, *, left: bool, transpose: bool, **_: Any) -> Array:
    """Q c, or c Q, or of the transposed Q."""
    a, taus, c = (each.astype(jnp.float64) for each in (a, taus, c))
    x = linalg.reflected(Backend, a, taus, c if left else jnp.swapaxes(c, -1, -2), transpose == left)
    return x if left else jnp.swapaxes(x, -1, -2)


@define("tridiagonal_solve")
def tridiagonal_solve(below: Array, on: Array, above: Array, b: Array, *, perturb_singular: bool = False) -> Array:
    if perturb_singular:
        raise NotImplementedError(
            "portable numerics: a perturbed matrix has no portable form; use perturb_singular=False"
        )
    return linalg.tridiagonal_solve(Backend, *(each.astype(jnp.float64) for each in (below, on, above, b)))
