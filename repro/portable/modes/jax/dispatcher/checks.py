"""The mode's self-check: small cases and their fingerprints.

They are compiled as one program, when the mode is switched on. A case is a liberty that XLA may take, or a definition.
What it should be stands in checks.txt, as SHA-256 of all bits; tests/portable/test_jax_mode.py compares that file with
NumPy and with the reference.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import jax
import numpy as np
from jax import Array, lax
from jax import numpy as jnp

from repro.errors import UsageError
from repro.portable.backends.jax import Backend
from repro.portable.modes.common.checks import apart, fingerprint, published
from repro.portable.modes.jax.dispatcher.gate import counts, exactly


@dataclass(frozen=True)
class Case:
    """A computation on three matrices of inputs(), with a title in words."""

    title: str
    compute: Callable[..., Array]
    definition: bool
    """True for a definition, of float32; otherwise it is arithmetic, of float32 and of float64."""


CASES: dict[str, Case] = {}


def register(title: str, definition: bool = False) -> Callable[[Callable[..., Array]], Callable[..., Array]]:
    """Registers a function by its name; they are compared in this order, so that the first one that fails is the cause."""

    def registered(compute: Callable[..., Array]) -> Callable[..., Array]:
        CASES[compute.__name__] = Case(title, compute, definition)
        return compute

    return registered


# --- numbers: no rounding makes them ----------------------------------------------------------------------------------


def words(key: int, count: int) -> np.ndarray:
    """Random bits, uint64."""
    return np.random.Philox(key=[3, key]).random_raw(count)


def doubles(key: int, count: int, octaves: int) -> np.ndarray:
    """float64 of both signs and all bits, from 1 to 2^octaves."""
    bits = words(key, count)
    exponents = (bits >> np.uint64(52)) % np.uint64(octaves) + np.uint64(1023)
    return ((bits & np.uint64(0x800FFFFFFFFFFFFF)) | (exponents << np.uint64(52))).view(np.float64)


def singles(key: int, count: int, octaves: int) -> np.ndarray:
    """float32 in the same way."""
    bits = (words(key, count) >> np.uint64(32)).astype(np.uint32)
    exponents = (bits >> np.uint32(23)) % np.uint32(octaves) + np.uint32(127)
    return ((bits & np.uint32(0x807FFFFF)) | (exponents << np.uint32(23))).view(np.float32)


@cache
def inputs() -> tuple[np.ndarray, ...]:
    """Three matrices [8, 64] of float32, and three of float64."""
    shape = 8, 64
    return tuple(made(key, 512, 4).reshape(shape) for made in (singles, doubles) for key in range(3))


# --- cases: of matrices a, b, c ----------------------------------------------------------


@register("a product and a sum, each rounded")
def contraction(a: Array, b: Array, c: Array) -> Array:
    return jnp.stack([a * b + c, c - a * b, a * b - c * a, ((a * 0.3 + 0.7) * a + 0.11) * a])


@register("a product and a sum in a short loop")
def loop(a: Array, b: Array, c: Array) -> Array:
    return lax.map(lambda each: each[0] * each[1] + each[2], (a[0], b[0], c[0]))


@register("a quotient as a division")
def division(a: Array, b: Array, _: Array) -> Array:
    return jnp.stack([a / 3.0, a / b[:1], a / b, a / 3.0 / b[:1]])


@register("a square root and a division")
def root(a: Array, b: Array, _: Array) -> Array:
    size = jnp.sqrt(abs(b))
    return jnp.stack([1.0 / size, a / jnp.sqrt(abs(a)), size * size])


@register("sums and products with constants in their order")
def constants(a: Array, _: Array, __: Array) -> Array:
    return jnp.stack([(a + 1e3) - 1e3, (a * 0.3) * 0.7, (a + 0.3) + 0.7, a * 0.3 + a * 0.7])


@register("a rounding between two operations")
def rounding(a: Array, b: Array, _: Array) -> Array:
    short = jnp.bfloat16 if a.dtype == jnp.float32 else jnp.float32
    return (a[..., None] * b[0]).astype(short).astype(a.dtype).max(2)


@register("a sum of numbers", definition=True)
def sums(a: Array, _: Array, __: Array) -> Array:
    return a.sum(1)


@register("a product of matrices", definition=True)
def products(a: Array, b: Array, _: Array) -> Array:
    return a @ b.T


@register("an elementary function", definition=True)
def functions(a: Array, _: Array, __: Array) -> Array:
    return jnp.log(jnp.exp(a[:2] * 2.0**-3) + jnp.tanh(a[:2]))


@register("a sum at repeated indices", definition=True)
def scatter(a: Array, _: Array, __: Array) -> Array:
    return jnp.zeros((3, 64), a.dtype).at[np.arange(8) % 3].add(a)


# --- the check --------------------------------------------------------------------------------------------------------


def computed(*matrices: Array) -> dict[str, list[Array]]:
    """All cases."""
    single, double = matrices[:3], matrices[3:]
    return {
        name: [case.compute(*given) for given in ([single] if case.definition else [single, double])]
        for name, case in CASES.items()
    }


_passed: set[tuple[str, str]] = set()
"""Devices and matmul backends that passed in this process."""


def check_device() -> None:
    """UsageError if a case has other bits on JAX's default device; the mode must be on."""
    this = jax.default_backend(), Backend.engine
    if this in _passed:
        return
    with apart(counts), exactly():
        results = jax.jit(computed)(*inputs())
    for name, case in CASES.items():
        if fingerprint(results[name]) != published(__file__)[name]:
            raise UsageError(
                f"portable numerics: JAX does not compute {case.title} by the rules on this device ({this[0]}), so they "
                "stay off; use another device or version of JAX, or take options out of XLA_FLAGS"
            )
    _passed.add(this)
