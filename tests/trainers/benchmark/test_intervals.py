"""repro.trainers.benchmark.intervals against values worked out by hand.

And what a seeded bootstrap must hold to.
"""

import math

import pytest

from repro.trainers.benchmark import intervals
from repro.trainers.benchmark.results import Summary


def test_summary_by_hand():
    result = intervals.summary([4.0, 1.0, 3.0, 2.0])
    assert (result.n, result.median, result.quartiles) == (4, 2.5, (1.75, 3.25))
    assert intervals.summary([7.0]) == Summary(n=1, median=7.0, quartiles=(7.0, 7.0), interval=None)


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_of_few_samples_the_interval_is_their_range(count: int):
    assert intervals.interval([float(i) for i in range(count)]) == (0.0, count - 1.0)


def test_of_many_samples_the_interval_is_narrower():
    """Of 25 samples the order statistics 8 and 18 cover the median with 95.7 % (binomial); the bootstrap lies close."""
    result = intervals.interval([float(i) for i in range(1, 26)])
    assert result is not None
    assert 7 <= result[0] <= 10 and 16 <= result[1] <= 19


def test_the_same_samples_give_the_same_interval():
    above, below = [[math.sin(shift + i) + 3 for i in range(100)] for shift in (0, 5)]
    results = [intervals.ratio_of_medians(above, below).interval for _ in range(2)]
    assert results[0] == results[1]


def test_ratios_are_of_the_same_rounds():
    """A machine that is three times as slow in round 1 changes no ratio; a round that only one of them has is out."""
    assert intervals.ratios({0: 2.0, 1: 6.0, 2: 9.0}, {0: 1.0, 1: 3.0, 3: 5.0}) == [2.0, 2.0]


def test_resolution_by_hand():
    """Half of the interval is 10 % of the median; two such errors add up to 14.1 %."""
    assert intervals.resolution(Summary(n=5, median=2.0, interval=(1.8, 2.2))) == pytest.approx(0.1 * 2**0.5)
    assert intervals.resolution(Summary(n=1, median=2.0, interval=None)) is None


def test_ratio_of_medians():
    result = intervals.ratio_of_medians([2.0, 2.2, 2.1, 2.05, 2.15], [1.0, 1.1, 1.05, 1.02, 1.08])
    assert result.median == pytest.approx(2.0) and result.n == 5
    assert result.interval is not None
    assert 2.0 / 1.1 <= result.interval[0] < 2 < result.interval[1] <= 2.2
    assert intervals.excludes_one(result)
    alike = intervals.ratio_of_medians([1.0, 1.2, 1.1, 1.05], [1.15, 1.0, 1.1, 1.2])
    assert not intervals.excludes_one(alike)
    assert not intervals.excludes_one(intervals.ratio_of_medians([2.0], [1.0]))
