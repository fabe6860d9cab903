"""Statistics of few, noisy samples: median, spread, and bootstrap intervals of a median and of paired ratios."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

LEVEL = 0.95
RESAMPLES = 10_000
ENOUGH = 4  # of fewer samples each, two sets that lie apart by chance alone do so too often: with 3, once in ten times
NOISY = 0.05  # where no smaller difference can be told, that is worth a warning


def summary(samples: Sequence[float]) -> dict[str, Any]:
    """Median, quartiles and the interval of the median, as JSON: {n, median, quartiles, interval}.

    Quartiles are interpolated linearly between order statistics. The interval is None for a single sample.
    """
    low, middle, high = np.quantile(np.array(samples, np.float64), [0.25, 0.5, 0.75]).tolist()
    return {"n": len(samples), "median": middle, "quartiles": [low, high], "interval": interval(samples)}


def interval(samples: Sequence[float]) -> list[float] | None:
    """The percentile bootstrap interval of the median (Efron, 1979), [low, high]; None for a single sample.

    Of five samples or fewer it is their whole range: no fewer than six can give an interval of 95%. Always the same for
    the same samples.
    """
    return None if len(samples) < 2 else _middle(_medians(samples, 0))


def ratios(above: dict[int, float], below: dict[int, float]) -> list[float]:
    """The ratios of samples that were taken in the same rounds, so that what slows a round down cancels out."""
    return [above[number] / below[number] for number in above if number in below]


def excludes_one(found: dict[str, Any]) -> bool:
    """Whether a ratio's summary() says that there is a difference, beyond the noise."""
    return found["interval"] is not None and not found["interval"][0] <= 1 <= found["interval"][1]


def resolution(found: dict[str, Any]) -> float | None:
    """The smallest relative difference from another median, as noisy as this one, that could have been told.

    The half widths of the two intervals add up as independent errors do. None for a single sample.
    """
    if found["interval"] is None:
        return None
    low, high = found["interval"]
    return math.sqrt(2) * (high - low) / 2 / found["median"]


def ratio_of_medians(above: Sequence[float], below: Sequence[float]) -> dict[str, Any]:
    """The ratio of the medians of samples that have nothing to do with one another, as summary() gives a ratio's."""
    medians = np.median(above), np.median(below)
    found: dict[str, Any] = {"n": min(len(above), len(below)), "median": float(medians[0] / medians[1])}
    if found["n"] < 2:
        return found | {"interval": None}
    drawn = [_medians(values, key) for key, values in enumerate((above, below))]
    return found | {"interval": _middle(drawn[0] / drawn[1])}


def _medians(samples: Sequence[float], key: int) -> np.ndarray:
    """The medians of samples drawn with replacement, float64 [RESAMPLES]."""
    values = np.array(samples, np.float64)
    generator = np.random.Generator(np.random.Philox(key=key))
    return np.median(values[generator.integers(len(values), size=(RESAMPLES, len(values)))], axis=1)


def _middle(resampled: np.ndarray) -> list[float]:
    ends = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    return np.quantile(resampled, ends, method="closest_observation").tolist()
