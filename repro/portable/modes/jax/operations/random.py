"""Random bits: JAX's own integers, by a kernel of which XLA has less to compile than of JAX's loops."""

from jax import Array
from jax import numpy as jnp
from jax.extend.random import threefry2x32_p

from repro.portable.backends.jax import Backend
from repro.portable.modes.jax.dispatcher.registry import define_integers
from repro.portable.modes.jax.operations import calls


@define_integers("threefry2x32")
def threefry2x32(*words: Array) -> tuple[Array, ...]:
    """Both words of the results, uint32: of those of a key and of a counter."""
    if not Backend.calls_kernels() or not all(each.size for each in words):
        return threefry2x32_p.bind(*words)
    return calls.threefry(words[:2], words[2:], jnp.broadcast_shapes(*(each.shape for each in words)))
