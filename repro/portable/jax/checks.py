"""The self-check of portable numerics in JAX: see repro/portable/checks.py."""

import jax
import numpy as np
import optax
from jax import Array
from jax import numpy as jnp

from repro.portable import checks, rules
from repro.portable.jax.convolution import BATCH_LAST, correlate, correlate_with, spread
from repro.portable.jax.grids import double, exponent, round_to_grid, to_state
from repro.portable.jax.operations import softmax_cross_entropy
from repro.portable.jax.optimizers import Adam, Sgd


def self_check() -> None:
    """ReproError if this library, compiled, computes anything of checks.py with other bits, on this device."""
    images, kernel, *_ = checks.products()
    x, k = images.transpose(BATCH_LAST).astype(np.float64), kernel.astype(np.float64)
    (y, dk, dx), found = _computed(x, k, checks.inputs())
    found_products = (np.asarray(y.transpose(BATCH_LAST)), np.asarray(dk), np.asarray(dx.transpose(BATCH_LAST)))
    checks.check_products("JAX's matrix product", *found_products)
    checks.check_operations("JAX", found)


@jax.jit  # all at once, as a step is compiled, and in less time than one by one
def _computed(x: Array, kernel: Array, given: dict[str, tuple[Array, ...]]):
    return _products(x, kernel), _operations(given)


def _products(x: Array, kernel: Array) -> tuple[Array, Array, Array]:
    y = correlate(x, kernel)
    return y, correlate_with(x, jnp.sign(y)), spread(jnp.sign(y), kernel)


def _operations(given: dict[str, tuple[Array, ...]]) -> dict[str, tuple[Array, ...]]:
    (rounding,), (maximum,), (grid,), (logits, labels) = (
        given[name] for name in ("rounding", "maximum", "grid", "loss")
    )
    loss, pull = jax.vjp(lambda logits: softmax_cross_entropy(logits, labels), logits)
    weight, momentum, gradient = ({"w": array} for array in given["sgd"])
    sgd, slots = Sgd(checks.SGD).update(weight, optax.TraceState(momentum), gradient)
    weight, first, second, gradient = ({"w": array} for array in given["adam"])
    moments = optax.ScaleByAdamState(jnp.int32(checks.ADAM_COUNT), first, second)
    adam, moments = Adam(checks.ADAM).update(weight, moments, gradient)
    return {
        "rounding": (double(to_state(rounding * checks.FACTOR)) * checks.FACTOR,),
        "maximum": (double(to_state(maximum * checks.FACTOR)).max(1),),
        "grid": (round_to_grid(grid, exponent(grid, (1,)), rules.BITS),),
        "loss": (loss, *pull(jnp.ones_like(loss))),
        "sgd": (sgd["w"], slots.trace["w"]),
        "adam": (adam["w"], moments.mu["w"], moments.nu["w"]),
    }
