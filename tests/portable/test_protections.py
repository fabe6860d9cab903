"""Each rule of portable numerics is needed.

Without it some framework, compiled as a step is, gives other bits.
"""

import platform
from pathlib import Path

import numpy as np
import pytest

from programs import unprotected
from support.runs import some
from support.workers import WAYS, ask

pytestmark = [
    pytest.mark.deep,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="what compilers do was seen on x86-64 alone"),
]

__all__ = ["ask"]  # a fixture
XLA = ("jax compiled", "tensorflow compiled")
WIDE_REGISTERS = "avx512f" in Path("/proc/cpuinfo").read_text()
NEEDED = {
    "conversion": ("jax compiled",),  # float64 -> float32 -> float64 is dropped
    "reciprocal_root": XLA if WIDE_REGISTERS else (),  # becomes one operation, of AVX-512
    "over_root": ("tensorflow graph", *XLA),
    "fused": XLA,  # a product of more than 53 bits, and a sum, become a fused multiply-add
    "decays": XLA,
    "rest": XLA,
    "broadcast": ("jax eager", "jax compiled"),  # becomes the product with a reciprocal
    "constant": ("jax eager", "tensorflow graph", *XLA),
    "two_constants": ("tensorflow graph", *XLA),  # become one
    "three_factors": ("tensorflow graph",),  # are multiplied in another order
    "two_shifts": ("tensorflow graph", *XLA),
    "to_and_fro": ("tensorflow graph", *XLA),  # are left out
    "root": ("pytorch eager",),  # by MKL, not the processor
    "exponential": WAYS,  # by everybody's own library
}
PLAIN = [way for way in WAYS if way != "pytorch kernels"]  # whose sums are for integers alone
RANDOM = np.random.default_rng(0)
A, C = RANDOM.standard_normal((2, 256, 64))
B = RANDOM.uniform(0.5, 1.5, (256, 64))
WIDE = A[:, :8] * 2.0 ** RANDOM.integers(-20, 20, (256, 8))
SHUFFLED = RANDOM.permutation(WIDE)


def asked(ask, way: str, name: str, *arrays: np.ndarray) -> np.ndarray:
    (result,), _ = ask(way, f"unprotected.{name}", {}, [*arrays])
    return result


def expected(name: str) -> np.ndarray:
    return getattr(unprotected, name)(unprotected.NumPy(), A, B, C)


@pytest.mark.parametrize(
    "way", some(WAYS, "pytorch eager", "pytorch kernels", "jax compiled", "tensorflow graph", "tensorflow compiled")
)
@pytest.mark.parametrize("name", [*NEEDED, "quotient"])
def test_rewriting(ask, way: str, name: str) -> None:
    if way == "pytorch kernels" and name in ("root", "exponential"):
        way = "pytorch eager"  # a library's own function is in no loop
    if name in NEEDED:
        changed = not np.array_equal(asked(ask, way, name, A, B, C), expected(name))
        assert changed or way not in NEEDED[name]
    if name != "exponential":  # has no other form than a table, see test_definitions.py
        assert np.array_equal(asked(ask, way, f"{name}_protected", A, B, C), expected(f"{name}_protected"))


@pytest.mark.parametrize("way", some(PLAIN, "pytorch eager", "jax compiled", "tensorflow graph"))
@pytest.mark.parametrize("name", ["total", "product", "scattered"])
def test_order(ask, way: str, name: str) -> None:
    """Sums of numbers depend on it, sums of integers do not."""
    assert not np.array_equal(asked(ask, way, name, WIDE, B, C), asked(ask, way, name, SHUFFLED, B, C))
    name += "_protected"
    assert np.array_equal(asked(ask, way, name, WIDE, B, C), asked(ask, way, name, SHUFFLED, B, C))


@pytest.mark.parametrize("way", some(["pytorch eager", "tensorflow eager", "tensorflow graph"], "pytorch eager"))
def test_nan_is_no_index(ask, way: str) -> None:
    """JAX would read whatever memory there is."""
    a = np.array([[0.0, np.nan, 16.0]])
    with pytest.raises(RuntimeError, match=r"out of|not in \[0"):
        asked(ask, way, "place_of_nan", a, a, a)
    result = asked(ask, way, "place_of_nan_protected", a, a, a)
    assert result[0, 0] == 1 and np.isnan(result[0, 1]) and result[0, 2] < 1
