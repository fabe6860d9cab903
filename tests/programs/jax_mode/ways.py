"""One gradient in each way in which JAX computes it, under the mode: prints, as JSON, a hash for each way.

    XLA_FLAGS=--xla_force_host_platform_device_count=4 python ways.py portable|own [jit]

own: without the mode. jit: by jit alone. Ways by several devices take all that there are.
"""

import hashlib
import json
import sys
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import Array, lax
from jax import numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import repro.portable.jax as portable

RANDOM = np.random.Generator(np.random.PCG64(7))
X = RANDOM.standard_normal((64, 96)).astype(np.float32)
WEIGHTS = tuple((RANDOM.standard_normal(shape) / 8).astype(np.float32) for shape in ((96, 80), (80, 24)))
Weights = tuple[Any, ...]


def loss(weights: Weights, x: Any) -> Array:
    hidden = jax.nn.gelu(x @ weights[0])
    hidden = (hidden - hidden.mean(1, keepdims=True)) / (hidden.std(1, keepdims=True) + 1e-5)
    return jax.nn.logsumexp(hidden @ weights[1], 1).mean()


def rematerialized(weights: Weights, x: Any) -> Array:
    return jax.checkpoint(loss)(weights, x)


gradient = jax.grad(loss)


def of_layers(weights: Weights, x: Any) -> Any:
    """By vmap over two copies of the weights."""
    twice = tuple(jnp.stack([each, each]) for each in weights)
    return tuple(each[1] for each in jax.vmap(gradient, (0, None))(twice, x))


def mesh() -> Mesh:
    return Mesh(np.array(jax.devices()), ("rows",))


def of_rows(weights: Weights, x: Any) -> Any:
    """By jit over devices, each of which has some of the rows."""
    return jax.jit(gradient)(weights, jax.device_put(x, NamedSharding(mesh(), PartitionSpec("rows"))))


def of_columns(weights: Weights, x: Any) -> Any:
    """By jit over devices, each of which has some of the columns of the weights."""
    placed = tuple(jax.device_put(each, NamedSharding(mesh(), PartitionSpec(None, "rows"))) for each in weights)
    return jax.jit(gradient)(placed, x)


def gathered(weights: Weights, x: Any) -> Any:
    return gradient(weights, lax.all_gather(x, "rows", tiled=True))


def by_shard_map(weights: Weights, x: Any) -> Any:
    """Rows are gathered from the devices, each of which computes all."""
    parts, everywhere = PartitionSpec("rows"), PartitionSpec()
    function = jax.shard_map(gathered, mesh=mesh(), in_specs=(everywhere, parts), out_specs=everywhere, check_vma=False)
    return jax.jit(function)(weights, x)


def by_pmap(weights: Weights, x: Any) -> Any:
    """The same by pmap."""
    parts = x.reshape(len(jax.devices()), -1, x.shape[1])
    return tuple(each[-1] for each in jax.pmap(gathered, "rows", in_axes=(None, 0))(weights, parts))


def ahead(weights: Weights, x: Any) -> Any:
    return jax.jit(gradient).lower(weights, x).compile()(weights, x)


WAYS: dict[str, Callable[[Weights, Any], Any]] = {
    "eager": gradient,
    "jit": jax.jit(gradient),
    "ahead of time": ahead,
    "checkpoint": jax.jit(jax.grad(rematerialized)),
    "vmap": jax.jit(of_layers),
    "rows on devices": of_rows,
    "columns on devices": of_columns,
    "shard_map": by_shard_map,
    "pmap": by_pmap,
}


def scattered() -> dict[str, bool]:
    """Whether sums over devices of which each keeps a part are those of which each keeps all."""
    parts, everywhere = PartitionSpec("rows"), PartitionSpec()

    def over(function: Callable[[Any], Any], kept: Any) -> np.ndarray:
        return np.asarray(jax.jit(jax.shard_map(function, mesh=mesh(), in_specs=parts, out_specs=kept))(X))

    parts_of_all = over(lambda x: lax.psum_scatter(x, "rows", tiled=True), parts)
    other_axis = over(
        lambda x: lax.psum_scatter(x, "rows", scatter_dimension=1, tiled=True), PartitionSpec(None, "rows")
    )
    right = over(lambda x: lax.psum(x, "rows"), everywhere)
    return {"first axis": np.array_equal(parts_of_all, right), "second axis": np.array_equal(other_axis, right)}


def digest(arrays: Any) -> str:
    return hashlib.sha256(b"".join(np.asarray(each).tobytes() for each in arrays)).hexdigest()[:16]


if __name__ == "__main__":
    if "portable" in sys.argv:
        portable.enable()
    hashes = {name: digest(way(WEIGHTS, X)) for name, way in WAYS.items() if "jit" not in sys.argv or name == "jit"}
    print(json.dumps({"hashes": hashes, "scattered": {} if "jit" in sys.argv else scattered()}))
