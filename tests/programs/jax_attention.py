"""Attention of JAX programs under portable numerics: prints what depends on keys that a query does not see, as JSON."""

import json
from collections.abc import Callable

import jax
import numpy as np
from flax import linen
from jax import Array
from jax import numpy as jnp

import repro.portable.jax as portable
from reference.arithmetic import grid, r32


def random(*shape: int, seed: int = 0) -> Array:
    return jnp.asarray(np.random.Generator(np.random.Philox(seed + sum(shape))).standard_normal(shape, np.float32))


def by_matmul(query: Array, key: Array, value: Array, mask: Array | None = None) -> Array:
    query, key, value = (x.swapaxes(1, 2) for x in (query, key, value))
    scores = query @ key.swapaxes(-1, -2) / 4
    return (jax.nn.softmax(scores if mask is None else jnp.where(mask, scores, -jnp.inf)) @ value).swapaxes(1, 2)


WAYS: dict[str, Callable[..., Array]] = {
    "jax.nn": lambda q, k, v, mask=None: jax.nn.dot_product_attention(q, k, v, mask=mask),
    "flax": lambda q, k, v, mask=None: linen.dot_product_attention(q, k, v, mask=mask),
    "matmul": by_matmul,
}


def split(function: Callable[..., Array], query: Array, key: Array, value: Array) -> list[str]:
    """The ways to split queries and keys, [B, T, N, H] and [B, S, N, H], with other bits than the whole."""
    batch, rows, heads, _ = query.shape
    columns = key.shape[1]
    more = random(batch, 5, heads, key.shape[-1]) * 1e6
    seen = jnp.broadcast_to(jnp.arange(columns + 5) < columns, (batch, heads, rows, columns + 5))
    whole = function(query, key, value)
    ways = {
        "padding": (whole, function(query, jnp.concatenate([key, more], 1), jnp.concatenate([value, more], 1), seen)),
        "before": (
            whole,
            function(query, jnp.concatenate([more, key], 1), jnp.concatenate([more, value], 1), seen[..., ::-1]),
        ),
        "alone": (whole[:1], function(query[:1], key[:1], value[:1])),
    }
    triangle = jnp.broadcast_to(jnp.tril(jnp.ones((rows, rows), bool)), (batch, heads, rows, rows))
    cached = [function(query[:, t : t + 1], key[:, : t + 1], value[:, : t + 1]) for t in range(rows)]
    whole = function(query, key[:, :rows], value[:, :rows], triangle)
    ways["cache"] = whole, jnp.concatenate(cached, 1)
    return [name for name, (a, b) in ways.items() if not bool((a == b).all())]


def reference(weights: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Products of weights [B, M, K] and rows [B, K, N], by the specification."""
    v, r = grid(rows, (-1,))
    h, t = grid((weights * r.swapaxes(-1, -2)).astype(np.float32), (-1,))
    return r32((h @ v) * (t * 2.0**-26))


def products() -> list[str]:
    """Products of weights that are not those of the reference, by kernels, and with some matrices of other numbers."""
    wrong = []
    for size in (3, 40):
        weights = np.asarray(jax.nn.softmax(random(4, size, size + 1)))
        rows = np.asarray(random(4, size + 1, 5, seed=1) * jnp.exp2(jnp.arange(5.0)))
        given = weights.copy()
        given[1] = -weights[1]
        right, y = reference(weights, rows), np.asarray(jnp.matmul(given, rows))
        if not (y[[0, 2, 3]] == right[[0, 2, 3]]).all() or (y[1] == -right[1]).all():
            wrong.append(f"{size}")
        other = np.asarray(jnp.einsum("bkn,bmk->bnm", rows, weights))
        wrong += [] if (other.swapaxes(1, 2) == right).all() else [f"{size}, weights second"]
    return wrong


if __name__ == "__main__":
    portable.enable()
    arrays = random(2, 7, 2, 32), random(2, 9, 2, 32), random(2, 9, 2, 32, seed=1)
    found = {f"{name}, compiled": split(jax.jit(function), *arrays) for name, function in WAYS.items()}
    found["matmul"] = split(by_matmul, *arrays)
    print(json.dumps({"split": {name: ways for name, ways in found.items() if ways}, "products": products()}))
