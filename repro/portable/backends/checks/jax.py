"""The self-check in JAX: see repro/portable/backends/checks/cases.py."""

from functools import partial

import jax
from jax import Array

from repro.portable import kernels
from repro.portable.backends.checks import cases as checks
from repro.portable.backends.jax import Backend

if kernels.available:
    from repro.portable.kernels import jax as ffi

ENGINES = ("float64", "int16", "int8")


def self_check(engine: str = "float64") -> None:
    """Sets the matmul backend: auto, float64, int8, or, on CPUs that have its instruction, int16.

    ReproError if this library, compiled, computes anything of cases.py with other bits, on this device.
    """
    compiled = {
        name: jax.jit(partial(checks.computed, Backend))  # all at once, as a step is, and in less time than one by one
        for name in ENGINES
    }
    product = {name: jax.jit(partial(_product)) for name in ENGINES}
    large = jax.device_put(checks.large())
    checks.choose_engine(
        "JAX",
        Backend,
        engine,
        lambda: compiled[Backend.engine](checks.inputs()),
        lambda: product[Backend.engine](*large).block_until_ready(),
        paired=kernels.available and ffi.possible(),
        int8_may_be_faster=False,
    )


def _product(a: Array, b: Array) -> Array:
    return Backend.matmul(*Backend.operands(a, b, work=checks.LARGE))
