"""Statistics of few, noisy samples.

Median, spread, and bootstrap intervals of a median and of paired ratios.
"""

import math
from collections.abc import Sequence

import numpy as np

from repro.trainers.benchmark.results import Pair, Summary

LEVEL = 0.95
RESAMPLES = 10_000
ENOUGH = 4  # of fewer samples each, two sets that lie apart by chance alone do so too often: with 3, once in ten times
NOISY = 0.05  # where no smaller difference can be seen, that is worth a warning


def summary(samples: Sequence[float]) -> Summary:
    """The median, quartiles and the interval of the median.

    Quartiles are interpolated linearly between order statistics. The interval is None for a single sample.
    """
    low, middle, high = np.quantile(np.array(samples, np.float64), [0.25, 0.5, 0.75]).tolist()
    return Summary(n=len(samples), median=middle, quartiles=(low, high), interval=interval(samples))


def interval(samples: Sequence[float]) -> Pair | None:
    """The percentile bootstrap interval of the median (Efron, 1979), (low, high); None for a single sample.

    Of five samples or fewer it is their whole range: no fewer than six can give an interval of 95%. Always the same for
    the same samples.
    """
    return None if len(samples) < 2 else _middle(_medians(samples, 0))


def ratios(above: dict[int, float], below: dict[int, float]) -> list[float]:
    """The ratios of samples that were taken in the same rounds, so that what slows a round down cancels out."""
    return [above[number] / below[number] for number in above if number in below]


def excludes_one(ratio: Summary) -> bool:
    """True if there is a difference beyond the noise."""
    return ratio.interval is not None and not ratio.interval[0] <= 1 <= ratio.interval[1]


def resolution(seconds: Summary) -> float | None:
    """The smallest relative difference from another median, as noisy as this one, that could have been seen.

    The half widths of the two intervals add up as independent errors do. None for a single sample.
    """
    if seconds.interval is None:
        return None
    low, high = seconds.interval
    return math.sqrt(2) * (high - low) / 2 / seconds.median


def ratio_of_medians(above: Sequence[float], below: Sequence[float]) -> Summary:
    """The ratio of the medians of samples that have nothing to do with one another, without quartiles."""
    medians = np.median(above), np.median(below)
    ratio = Summary(n=min(len(above), len(below)), median=float(medians[0] / medians[1]), interval=None)
    if ratio.n >= 2:
        drawn = [_medians(values, key) for key, values in enumerate((above, below))]
        ratio.interval = _middle(drawn[0] / drawn[1])
    return ratio


def _medians(samples: Sequence[float], key: int) -> np.ndarray:
    """The medians of samples drawn with replacement, float64 [RESAMPLES]."""
    values = np.array(samples, np.float64)
    generator = np.random.Generator(np.random.Philox(key=key))
    return np.median(values[generator.integers(len(values), size=(RESAMPLES, len(values)))], axis=1)


def _middle(resampled: np.ndarray) -> Pair:
    ends = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    low, high = np.quantile(resampled, ends, method="closest_observation").tolist()
    return low, high
