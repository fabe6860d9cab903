"""Operations of golden/operations.txt that JAX alone has."""

from typing import Any

import jax
from jax import lax
from jax import numpy as jnp
from jax.experimental import sparse

from programs.golden_cases.cases import Case, array, filler, index

CASES: dict[str, Case] = {}
case = filler(CASES)

PLANE = array(12, 20)


def added(x: Any) -> Any:
    """Sums of overlapping windows."""
    return lax.reduce_window(x, 0.0, lax.add, (3, 4), (2, 1), "SAME")


def tangent(x: Any, slope: Any) -> Any:
    """A derivative forward, which takes the slopes of the largest numbers."""
    return jax.jvp(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (3, 4), (2, 1), "VALID"), (x,), (slope,))[1]


def products(x: Any) -> Any:
    """A reduction by a function that multiplies."""
    return lax.reduce(x, jnp.ones((), x.dtype), lambda a, b: a * b, (1,))


def convolved(a: Any, c: Any, b: Any, d: Any) -> Any:
    """Complex images by a complex kernel."""
    y = lax.conv(lax.complex(a, b), lax.complex(c, d), (1, 2), "SAME")
    return lax.real(y), lax.imag(y)


case("cbrt", lax.cbrt, array(240, kind="special"))
case("complex-conv", convolved, *[array(2, 3, 7, 8), array(4, 3, 3, 3)] * 2)
case("window-sum", added, PLANE)
case("window-tangent", tangent, PLANE, PLANE, gradient=False)
case("reduce", products, array(6, 20), gradient=False)
case("reduce_prod", lambda x: lax.reduce_prod_p.bind(x, axes=(1,), out_sharding=None), array(6, 20), gradient=False)


def of_batches(x: Any, i: Any, b: Any) -> Any:
    """Products of sparse matrices [3, 8, 9] with a number in each row."""
    places = jnp.stack([jnp.broadcast_to(jnp.arange(8), (3, 8)), i.reshape(3, 8)], 2)
    return sparse.BCOO((x, places), shape=(3, 8, 9)) @ b


def of_groups(a: Any, b: Any) -> Any:
    """Products of 5, 0 and 4 rows with a matrix each; two rows belong to none."""
    return lax.ragged_dot(a, b, jnp.array([5, 0, 4]))


case("sparse-product-batches", of_batches, array(3, 8), index(9, 24), array(3, 9, 4))
case("ragged_dot", of_groups, array(11, 7), array(3, 7, 5))
