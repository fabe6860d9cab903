"""Sums by index and scans: the definitions beside the reference implementation."""

import numpy as np
import pytest

import reference
from repro.portable.backends.numpy import Backend
from repro.portable.definitions import scans, targets

RANDOM = np.random.default_rng(0)


def drawn(*shape: int) -> np.ndarray:
    """float32 numbers of many magnitudes."""
    return (RANDOM.standard_normal(shape) * 10.0 ** RANDOM.integers(-12, 12, shape)).astype(np.float32)


def test_each_row_is_a_sum_on_a_grid_of_its_own() -> None:
    x, index = drawn(200, 3), RANDOM.integers(0, 7, 200)
    result = targets.by_index(Backend, x, index, 8)
    assert (result == reference.sum_by_index(x, index, 8)).all()
    alone = index == 2
    assert (targets.by_index(Backend, x[alone], index[alone], 3)[2] == result[2]).all()


def test_what_has_no_grid_is_nan_for_its_row_alone() -> None:
    x, index = drawn(20, 2), np.arange(20) % 4
    right = targets.by_index(Backend, x, index, 4)
    x[5, 0] = np.inf
    result = targets.by_index(Backend, x, index, 4)
    assert np.isnan(result[1]).all() and (np.delete(result, 1, 0) == np.delete(right, 1, 0)).all()


def test_sums_of_float64_hold_what_is_far_below_the_largest() -> None:
    x = np.array([[2.0**60], [1.0], [2.0**-40], [-(2.0**60)]])
    assert targets.by_index(Backend, x, np.zeros(4, int), 1)[0, 0] == 1.0 + 2.0**-40


@pytest.mark.parametrize("size", [1, 15, 16, 17, 33, 256, 257, 4100])
def test_a_scan_depends_on_what_comes_before_alone(size: int) -> None:
    x = drawn(3, size).astype(np.float64)
    result = scans.cumulative_sum(Backend, x, 1)
    assert (result == reference.cumulative_sum(x)).all()
    half = max(1, size // 2)
    assert (scans.cumulative_sum(Backend, x[:, :half], 1) == result[:, :half]).all()
