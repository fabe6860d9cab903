"""The self-check of portable numerics in JAX: see repro/portable/checks.py."""

from functools import partial

import jax

from repro.portable import checks
from repro.portable.jax.backend import Backend


def self_check(engine: str = "float64") -> None:
    """Sets the engine of products: auto, float64 or int8.

    ReproError if this library, compiled, computes anything of checks.py with other bits, on this device.
    """
    compiled = {
        name: jax.jit(partial(checks.computed, Backend))  # all at once, as a step is, and in less time than one by one
        for name in ("float64", "int8")
    }
    product = {name: jax.jit(partial(Backend.matmul)) for name in ("float64", "int8")}
    large = jax.device_put(checks.large())
    checks.settle(
        "JAX", Backend, engine, lambda: compiled[Backend.engine](checks.inputs()),
        lambda: product[Backend.engine](*large).block_until_ready(),
    )  # fmt: skip
