"""The self-check of portable numerics in JAX: see repro/portable/checks.py."""

from functools import partial

import jax

from repro.portable import checks
from repro.portable.jax.backend import Backend


def self_check() -> None:
    """ReproError if this library, compiled, computes anything of checks.py with other bits, on this device."""
    compiled = jax.jit(partial(checks.computed, Backend))  # all at once, as a step is, and in less time than one by one
    checks.check("JAX", compiled(checks.inputs()))
