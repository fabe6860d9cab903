"""Kernels as operations of JAX, on a CPU."""

import ctypes
import logging
from collections.abc import Sequence
from functools import cache
from typing import Any

import jax
from jax import Array
from jax import numpy as jnp

from repro.portable import kernels
from repro.portable.kernels.machine import Kernel, nothing
from repro.portable.kernels.xla import handler

log = logging.getLogger(__name__)

_registered: set[str] = set()


@cache
def possible() -> bool:
    """True if JAX computes on a CPU that has int16 kernels, and calls them."""
    if not kernels.paired() or jax.default_backend() != "cpu":
        return False
    try:
        return bool(materialized(jnp.ones(1))[0] == 1)
    except Exception as error:  # of whatever kind: other versions of XLA may have another interface
        reason = str(error).split("\n")[0]
        log.warning("portable: JAX %s does not call kernels compiled here: %s", jax.__version__, reason)
        return False


def call(made: Kernel, dtype: str, shape: tuple[int, ...], *arrays: Array) -> Array:
    """The result of kernels for arrays."""
    return _function(made, jax.ShapeDtypeStruct(shape, dtype))(*arrays)


def call_all(made: Kernel, results: Sequence[tuple[str, tuple[int, ...]]], *arrays: Array) -> tuple[Array, ...]:
    """The results of kernels that have several, each of a type and a shape."""
    return tuple(_function(made, [jax.ShapeDtypeStruct(shape, dtype) for dtype, shape in results])(*arrays))


def materialized(x: Array) -> Array:
    """Hold an array in memory, so that XLA does not compute it again for each use."""
    return _function(nothing(), jax.ShapeDtypeStruct(x.shape, x.dtype), {0: 0})(x)


def _function(made: Kernel, result: Any, aliases: dict[int, int] | None = None):
    known = handler(made)
    if known.name not in _registered:
        jax.ffi.register_ffi_target(known.name, jax.ffi.pycapsule(ctypes.c_void_p(known.address)), platform="cpu")
        _registered.add(known.name)
    return jax.ffi.ffi_call(known.name, result, vmap_method="sequential", input_output_aliases=aliases)
