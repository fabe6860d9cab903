"""Calls of JAX's `lax` that need more than arrays; arguments by letters, as jax_functions.py has them."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp

HALF = 3
"""The length of kernels and windows."""


def _windows(function: Callable[..., Any], first: float) -> Callable[..., Any]:
    def call(x: Any) -> Any:
        x = jnp.atleast_1d(x)  # XLA ends the process over the gradient without axes
        rank = x.ndim
        return lax.reduce_window(x, np.array(first, x.dtype), function, (HALF,) * rank, (2,) * rank, "SAME")

    return call


def _scattered(function: Callable[..., Any]) -> Callable[..., Any]:
    """Rows of y into rows of x, several into one."""
    numbers = lax.ScatterDimensionNumbers(tuple(range(1, 2)), (0,), (0,))
    return lambda x, y, i: function(
        x.reshape(-1, x.shape[-1]), i.reshape(-1, 1)[: y.size // y.shape[-1]], y.reshape(-1, y.shape[-1]), numbers
    )


def _images(x: Any) -> Any:
    return x[:, :, None, None] * jnp.ones((1, 1, 6, 6), x.dtype) + jnp.arange(6, dtype=x.dtype)


CALLS: dict[str, tuple[str, Callable[..., Any]]] = {
    # --- lax: shapes --------------------------------------------------------------------------------------------------
    "lax.bitcast_convert_type": ("x", lambda x: lax.bitcast_convert_type(x, f"uint{8 * x.dtype.itemsize}")),
    "lax.broadcast": ("x", lambda x: lax.broadcast(x, (2,))),
    "lax.broadcast_in_dim": ("x", lambda x: lax.broadcast_in_dim(x, (2, *x.shape), range(1, 1 + x.ndim))),
    "lax.broadcast_like": ("x y", lambda x, y: lax.broadcast_like(x, y)),
    "lax.collapse": ("x", lambda x: lax.collapse(x, 0, 2)),
    "lax.concatenate": ("x y", lambda x, y: lax.concatenate((x, y), 1)),
    "lax.convert_element_type": (
        "x",
        lambda x: [
            lax.convert_element_type(x, to) for to in ("int32", "uint8", "int16", "bool", "bfloat16", "float16")
        ],
    ),
    "lax.dynamic_index_in_dim": ("x", lambda x: lax.dynamic_index_in_dim(x, 1)),
    "lax.dynamic_slice": ("x", lambda x: lax.dynamic_slice(x, (1,) * x.ndim, (2,) * x.ndim)),
    "lax.dynamic_slice_in_dim": ("x", lambda x: lax.dynamic_slice_in_dim(x, 1, 2)),
    "lax.dynamic_update_index_in_dim": ("x y", lambda x, y: lax.dynamic_update_index_in_dim(x, y[0], 1, 0)),
    "lax.dynamic_update_slice": ("x y", lambda x, y: lax.dynamic_update_slice(x, y[:2], (1,) * x.ndim)),
    "lax.dynamic_update_slice_in_dim": ("x y", lambda x, y: lax.dynamic_update_slice_in_dim(x, y[:2], 1, 0)),
    "lax.expand_dims": ("x", lambda x: lax.expand_dims(x, (0,))),
    "lax.gather": ("x i", lambda x, i: x[i.reshape(-1)[:7]]),
    "lax.index_in_dim": ("x", lambda x: lax.index_in_dim(x, 1)),
    "lax.index_take": ("x i", lambda x, i: lax.index_take(x, (i.reshape(-1)[:7],), (0,))),
    "lax.pad": ("x", lambda x: lax.pad(x, np.array(2, x.dtype), [(1, -1, 2)] * x.ndim)),
    "lax.reshape": ("x", lambda x: lax.reshape(x, (x.size,))),
    "lax.rev": ("x", lambda x: lax.rev(x, (0,))),
    "lax.select_n": ("b x y", lambda b, x, y: lax.select_n(b, x, y)),
    "lax.slice": ("x", lambda x: lax.slice(x, (1,) * x.ndim, x.shape, (2,) * x.ndim)),
    "lax.slice_in_dim": ("x", lambda x: lax.slice_in_dim(x, 1, 3)),
    "lax.split": ("x", lambda x: lax.split(x, (1, x.shape[0] - 1))),
    "lax.squeeze": ("x", lambda x: lax.squeeze(x[:1], (0,))),
    "lax.stack": ("x y", lambda x, y: lax.stack((x, y))),
    "lax.tile": ("x", lambda x: lax.tile(x, (2,) * x.ndim)),
    "lax.transpose": ("x", lambda x: lax.transpose(x, range(x.ndim)[::-1])),
    "lax.unstack": ("x", lambda x: lax.unstack(x)),
    # --- lax: numbers -------------------------------------------------------------------------------------------------
    "lax.approx_max_k": ("x", lambda x: lax.approx_max_k(x, 3)),
    "lax.approx_min_k": ("x", lambda x: lax.approx_min_k(x, 3)),
    "lax.argmax": ("x", lambda x: lax.argmax(x, 0, "int32")),
    "lax.argmin": ("x", lambda x: lax.argmin(x, 0, "int32")),
    "lax.associative_scan": ("x", lambda x: lax.associative_scan(lax.mul, x)),
    "lax.integer_pow": ("x", lambda x: [lax.integer_pow(x, n) for n in (-3, -1, 0, 1, 2, 3, 7)]),
    # left of 0 JAX's own has wrong digits: see tests/programs/incomplete_errors.py
    "lax.polygamma": ("p", lambda x: [lax.polygamma(np.array(n, x.dtype), x) for n in (0, 1, 3)]),
    "lax.reduce": ("x", lambda x: lax.reduce(x, np.array(1, x.dtype), lax.mul, (0,))),
    "lax.reduce_and": ("b", lambda b: lax.reduce_and(b, (0,))),
    "lax.reduce_max": ("x", lambda x: lax.reduce_max(x, (0,))),
    "lax.reduce_min": ("x", lambda x: lax.reduce_min(x, (0,))),
    "lax.reduce_or": ("b", lambda b: lax.reduce_or(b, (0,))),
    "lax.reduce_precision": ("x", lambda x: [lax.reduce_precision(x, 5, 2), lax.reduce_precision(x, 8, 7)]),
    "lax.reduce_prod": ("x", lambda x: lax.reduce_prod(x, (0,))),
    "lax.reduce_sum": ("x", lambda x: lax.reduce_sum(x, (0,))),
    "lax.reduce_xor": ("i", lambda i: lax.reduce_xor(i, (0,))),
    "lax.top_k": ("x", lambda x: lax.top_k(x, 2)),
    "lax.reduce_window": ("x", _windows(lax.add, 0)),
    "lax.reduce_window max": ("x", _windows(lax.max, -np.inf)),
    "lax.reduce_window min": ("x", _windows(lax.min, np.inf)),
    "lax.reduce_window mul": ("x", _windows(lax.mul, 1)),
    "lax.scatter": ("x y i", _scattered(lax.scatter)),
    "lax.scatter_add": ("x y i", _scattered(lax.scatter_add)),
    "lax.scatter_apply": ("x", lambda x: x.at[jnp.array([1, 1, 0])].apply(jnp.exp)),
    "lax.scatter_max": ("x y i", _scattered(lax.scatter_max)),
    "lax.scatter_min": ("x y i", _scattered(lax.scatter_min)),
    "lax.scatter_mul": ("x y i", _scattered(lax.scatter_mul)),
    "lax.scatter_sub": ("x y i", _scattered(lax.scatter_sub)),
    "lax.rng_bit_generator": ("k", lambda k: lax.rng_bit_generator(jnp.tile(jax.random.key_data(k), 2), (50,))),
    # --- lax: products ------------------------------------------------------------------------------------------------
    "lax.conv": ("x", lambda x: lax.conv(_images(x[0]), _images(x[1])[:, :, :3, :3], (1, 2), "SAME")),
    "lax.conv_general_dilated": (
        "x",
        lambda x: lax.conv_general_dilated(
            _images(x[0]), _images(x[1])[..., :3, :2], (1, 2), [(2, 1), (0, 3)], (2, 1), (1, 2)
        ),
    ),
    "lax.conv_general_dilated_local": (
        "x",
        lambda x: lax.conv_general_dilated_local(
            _images(x[0]),
            jnp.ones((2, x.shape[2] * 9, 4, 4), x.dtype) * x[0, 0, 0],
            (1, 1),
            "VALID",
            (3, 3),
        ),
    ),
    "lax.conv_general_dilated_patches": (
        "x",
        lambda x: lax.conv_general_dilated_patches(_images(x[0]), (3, 2), (1, 2), "SAME"),
    ),
    "lax.conv_transpose": (
        "x",
        lambda x: lax.conv_transpose(
            _images(x[0]), _images(x[1])[..., :3, :3], (2, 2), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW")
        ),
    ),
    "lax.conv_with_general_padding": (
        "x",
        lambda x: lax.conv_with_general_padding(_images(x[0]), _images(x[1]), (1, 1), [(2, 2), (1, 0)], None, None),
    ),
    "lax.dot_general": ("|A B", lambda a, b: lax.dot_general(a, b, (((0,), (1,)), ((), ())))),
    "lax.ragged_dot": ("|A B", lambda a, b: lax.ragged_dot(a, jnp.stack([b, b]), jnp.array([3, 4], jnp.int32))),
    "lax.ragged_dot_general": (
        "|A B",
        lambda a, b: lax.ragged_dot_general(
            a,
            jnp.stack([b, b]),
            jnp.array([3, 4], jnp.int32),
            lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,)),
        ),
    ),
    "lax.scaled_dot": (
        "|A B",
        lambda a, b: lax.scaled_dot(
            a, b, lhs_scale=jnp.ones((8, 1), jnp.float8_e8m0fnu), rhs_scale=jnp.ones((1, 8), jnp.float8_e8m0fnu)
        ),
    ),
    "lax.linalg.cholesky_update": ("|S v", lambda s, v: lax.linalg.cholesky_update(s, v)),
    "lax.linalg.householder_product": ("|A v", lambda a, v: lax.linalg.householder_product(a, v)),
    "lax.linalg.lu_pivots_to_permutation": ("i", lambda i: lax.linalg.lu_pivots_to_permutation(i[0, 0, :5] + 3, 9)),
    "lax.linalg.ormqr": ("|A v B", lambda a, v, b: lax.linalg.ormqr(a, v, b)),
    "lax.linalg.symmetric_product": ("|A S", lambda a, s: lax.linalg.symmetric_product(a, s)),
    "lax.linalg.triangular_solve": (
        "|L B",
        lambda a, b: [lax.linalg.triangular_solve(a, b, left_side=left, lower=True) for left in (True, False)],
    ),
    "lax.linalg.tridiagonal_solve": (
        "|v S",
        lambda v, s: lax.linalg.tridiagonal_solve(
            jnp.concatenate([v[:1] * 0, v[1:]]), abs(v) + 3, jnp.append(v[1:], 0), s
        ),
    ),
}
