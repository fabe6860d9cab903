"""Operations of each framework against the reference.

Bits are compared with ==, also before they are rounded to float32.

A fixed table of cases; test_random_operations.py has other ones in every run.
"""

import numpy as np
import pytest

import reference
from repro.errors import UsageError
from repro.frameworks import FRAMEWORKS
from repro.portable.definitions import grids
from repro.portable.numbers.constants import SUM_BITS
from support.operations import (
    CASES,
    LARGE,
    SIZES,
    Sizes,
    compare,
    compare_before_rounding,
    compare_convolution,
    compare_convolution_with_the_batch_last,
    compare_pool,
)
from support.runs import some
from support.workers import WAYS, ask

__all__ = ["ask"]  # a fixture

KINDS = [
    ("normal", "normal", "normal", "normal", "normal", "normal"),
    ("integers", "equal", "normal", "integers", "equal", "integers"),
    ("mixed", "mixed", "normal", "subnormal", "mixed", "mixed"),
    ("smallest", "tiny", "subnormal", "small", "smallest", "tiny"),
    ("limit", "huge", "normal", "huge", "limit", "small"),
    ("nan", "normal", "infinite", "equal", "nan", "normal"),
    ("zero", "negative zero", "normal", "negative zero", "zero", "equal"),
    ("normal", "infinite", "limit", "zero", "huge", "nan"),
]
"""The kinds of up to five arrays, and of the gradient."""
OF_ANY_SIZE: list[Sizes] = [
    (1, 1, 1, 1),
    SIZES,
    (5, 3, 2, 4),
    (1, 5, 5, 2),
    (3, 1, 4, 5),
    (4, 2, 1, 1),
    (2, 5, 3, 3),
    (5, 5, 5, 5),
]
"""For PyTorch, which compiles nothing: with a batch of one among them."""


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    "way",
    some(WAYS, "pytorch eager", "jax compiled", "tensorflow eager", deep=("pytorch kernels", "tensorflow compiled")),
)
def test_operation_is_that_of_the_reference_implementation(ask, way: str, name: str) -> None:
    for seed, (kinds, sizes) in enumerate(zip(KINDS, OF_ANY_SIZE, strict=True)):
        compare(ask, way, CASES[name], sizes if way == "pytorch eager" else SIZES, kinds, seed)


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith(("linear", "convolution", "attention"))])
@pytest.mark.parametrize("framework", some(FRAMEWORKS, "pytorch"))
def test_products_of_int8(ask, framework: str, name: str) -> None:
    for seed, kinds in enumerate(KINDS):
        compare(ask, f"{framework} int8", CASES[name], SIZES, kinds, seed)


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("framework", some(FRAMEWORKS, "pytorch", deep=("tensorflow", "jax")))
def test_products_of_int16(ask, framework: str, name: str) -> None:
    """And kernels of float64 for what int16 is not fit for."""
    for seed, kinds in enumerate(KINDS):
        compare(ask, f"{framework} int16", LARGE[name], SIZES, kinds, seed)


# kernel, stride, padding, dilation, groups
GEOMETRIES = [
    ((1, 1), (1, 1), (0, 0), (1, 1), 1),
    ((3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((3, 2), (2, 1), (0, 1), (1, 1), 2),
    ((2, 3), (3, 2), (3, 2), (1, 2), 1),
    ((1, 3), (1, 3), (0, 3), (3, 2), 3),
    ((2, 2), (2, 2), (1, 0), (2, 3), 2),
    ((3, 1), (1, 2), (2, 3), (3, 1), 1),
    ((1, 1), (3, 3), (1, 2), (2, 2), 3),
    ((3, 2), (1, 1), (12, 12), (12, 12), 1),
]


@pytest.mark.parametrize(
    "way",
    some(
        ["pytorch eager", "pytorch int8", "pytorch kernels"], "pytorch eager", deep=("pytorch int8", "pytorch kernels")
    ),
)
def test_any_convolution(ask, way: str) -> None:
    for seed, (kernel, stride, padding, dilation, groups) in enumerate(GEOMETRIES):
        compare_convolution(ask, way, kernel, stride, padding, dilation, groups, seed)


# kernel, dilation, padding, inputs of a group, groups, batch
BATCH_LAST = [
    ((3, 2), (1, 1), (0, 0), 1, 1, 8),
    ((1, 3), (2, 3), (2, 1), 3, 1, 16),
    ((2, 2), (3, 1), (1, 0), 20, 2, 24),
    ((3, 3), (1, 2), (0, 2), 20, 2, 32),
]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_convolution_with_the_batch_last(ask, framework: str) -> None:
    for seed, geometry in enumerate(BATCH_LAST):
        compare_convolution_with_the_batch_last(ask, framework, *geometry, seed)


# kernel, stride, padding, kind
POOLS = [
    ((2, 2), (2, 2), (0, 0), "normal"),
    ((3, 3), (1, 1), (2, 1), "integers"),
    ((1, 3), (3, 2), (0, 2), "nan"),
    ((3, 2), (1, 3), (1, 1), "infinite"),
    ((2, 1), (3, 3), (1, 0), "normal"),
    ((3, 3), (2, 1), (0, 0), "nan"),
    ((2, 3), (1, 2), (0, 1), "integers"),
    ((1, 1), (2, 2), (0, 0), "infinite"),
]


@pytest.mark.parametrize("name", ["max_pool", "average_pool"])
def test_any_pool(ask, name: str) -> None:
    for seed, pool in enumerate(POOLS):
        compare_pool(ask, name, *pool, seed)


SMOOTH = [name for name in CASES if name not in ("relu", "linear, one row", "no eps")]
BEFORE_ROUNDING = [
    ("normal", "mixed", "normal", "mixed", "normal", "mixed"),
    ("integers", *["huge", "tiny"] * 2, "mixed"),
]


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize(
    "way", some(WAYS, "pytorch eager", deep=("pytorch kernels", "jax compiled", "tensorflow graph"))
)
def test_before_rounding(ask, way: str, name: str) -> None:
    for seed, kinds in enumerate(BEFORE_ROUNDING):
        compare_before_rounding(ask, way, CASES[name], kinds, seed)


# --- what needs a case of its own -----------------------------------------------------------------------------------


@pytest.mark.parametrize("way", some(WAYS, "pytorch eager", deep=("pytorch kernels",)))
def test_scores_far_below_zero_count_beside_a_mask(ask, way: str) -> None:
    query, key, value = (np.array(x, np.float32)[None] for x in ([[-(2**20)]], [[4], [4], [1]], [[1], [2], [3]]))
    seen = np.array([[True, True, False]])
    options = {"causal": False, "scale": 1.0}
    (result,), _ = ask(way, "attention.attention", options, [query, key, value, seen])
    assert result == 1.5


@pytest.mark.parametrize("way", some(WAYS, "pytorch eager", deep=("pytorch kernels", "jax compiled")))
def test_philox(ask, way: str) -> None:
    """The known answers of Random123, tests/kat_vectors, of philox4x32 with 10 rounds."""
    counters = [[0] * 4, [2**32 - 1] * 4, [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344]]
    keys = [[0] * 2, [2**32 - 1] * 2, [0xA4093822, 0x299F31D0]]
    known = [
        [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8],
        [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ]
    assert [list(reference.philox(*both)) for both in zip(counters, keys, strict=True)] == known
    (result,), _ = ask(way, "worker.philox", {}, [np.array(counters), np.array(keys)])
    assert result.tolist() == known


def test_a_sum_that_is_too_long_is_refused() -> None:
    grids.check_length(2**27)
    with pytest.raises(UsageError, match="a sum of 134217729 numbers is too long to be exact: 134217728 are the most"):
        grids.check_length(2**27 + 1)
    grids.check_length(2**29, SUM_BITS)
    with pytest.raises(UsageError, match="a sum of 536870913 numbers is too long"):
        grids.check_length(2**29 + 1, SUM_BITS)
