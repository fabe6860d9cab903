"""Operations of random kinds, sizes and geometries.

They are other ones in every run; test_operations.py has a fixed table.
"""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from repro.frameworks import FRAMEWORKS
from support.operations import (
    CASES,
    FILLS,
    LARGE,
    SIZES,
    Kinds,
    Sizes,
    compare,
    compare_before_rounding,
    compare_convolution,
    compare_convolution_with_the_batch_last,
    compare_pool,
)
from support.workers import WAYS, ask

pytestmark = pytest.mark.slow
__all__ = ["ask"]  # a fixture

kinds = st.tuples(*[st.sampled_from(FILLS)] * 6)
seeds = st.integers(0, 2**32 - 1)
pairs = st.tuples(st.integers(1, 3), st.integers(1, 3))
geometries = given(
    pairs, pairs, st.tuples(st.integers(0, 3), st.integers(0, 3)), pairs, st.sampled_from([1, 2, 3]), seeds
)


def examples(count: int) -> settings:
    """Random ones; a failure prints how to have it again."""
    return settings(max_examples=count, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)


@pytest.mark.parametrize("name", CASES)
@given(st.tuples(*[st.integers(1, 5)] * 4), kinds, seeds)
@examples(30)
def test_operation_of_any_size(ask, name: str, sizes: Sizes, kinds: Kinds, seed: int) -> None:
    compare(ask, "pytorch eager", CASES[name], sizes, kinds, seed)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("way", WAYS[1:])
@given(kinds, seeds)
@examples(30)
def test_operation(ask, way: str, name: str, kinds: Kinds, seed: int) -> None:
    """Of one size, for which a framework compiles once."""
    compare(ask, way, CASES[name], SIZES, kinds, seed)


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith(("linear", "convolution", "attention"))])
@pytest.mark.parametrize("framework", FRAMEWORKS)
@given(kinds, seeds)
@examples(30)
def test_products_of_int8(ask, framework: str, name: str, kinds: Kinds, seed: int) -> None:
    compare(ask, f"{framework} int8", CASES[name], SIZES, kinds, seed)


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("framework", FRAMEWORKS)
@given(kinds, seeds)
@examples(20)
def test_products_of_int16(ask, framework: str, name: str, kinds: Kinds, seed: int) -> None:
    compare(ask, f"{framework} int16", LARGE[name], SIZES, kinds, seed)


@pytest.mark.parametrize("way", ["pytorch eager", "pytorch int8"])
@geometries
@examples(60)
def test_any_convolution(ask, way: str, kernel, stride, padding, dilation, groups: int, seed: int) -> None:
    compare_convolution(ask, way, kernel, stride, padding, dilation, groups, seed)


@geometries
@examples(20)
def test_any_convolution_in_kernels(ask, kernel, stride, padding, dilation, groups: int, seed: int) -> None:
    compare_convolution(ask, "pytorch kernels", kernel, stride, padding, dilation, groups, seed)


@pytest.mark.parametrize("framework", FRAMEWORKS)
@given(
    pairs,
    pairs,
    st.tuples(st.integers(0, 2), st.integers(0, 2)),
    st.sampled_from([(1, 1), (3, 1), (20, 2)]),
    st.sampled_from([8, 16, 24, 32]),
    seeds,
)
@examples(6)
def test_convolution_with_the_batch_last(
    ask, framework: str, kernel, dilation, padding, channels, batch: int, seed: int
) -> None:
    inputs, groups = channels
    compare_convolution_with_the_batch_last(ask, framework, kernel, dilation, padding, inputs, groups, batch, seed)


@pytest.mark.parametrize("name", ["max_pool", "average_pool"])
@given(pairs, pairs, st.data(), st.sampled_from(["normal", "integers", "nan", "infinite"]), seeds)
@examples(40)
def test_any_pool(ask, name: str, kernel, stride, data, fill: str, seed: int) -> None:
    padding = tuple(data.draw(st.integers(0, length - 1)) for length in kernel)
    compare_pool(ask, name, kernel, stride, padding, fill, seed)


@pytest.mark.parametrize("name", [name for name in CASES if name not in ("relu", "linear, one row", "no eps")])
@pytest.mark.parametrize("way", WAYS)
@given(st.tuples(*[st.sampled_from(["normal", "mixed", "integers", "tiny", "huge"])] * 6), seeds)
@examples(4)
def test_before_rounding(ask, way: str, name: str, kinds: Kinds, seed: int) -> None:
    compare_before_rounding(ask, way, CASES[name], kinds, seed)
