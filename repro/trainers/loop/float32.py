"""Constants of the configuration as float32 numbers."""

import math

import numpy as np

from repro.errors import UsageError

TINY = 2.0**-100
"""Smaller magnitudes become +0 when they enter the float32 state: subnormals, and -0, are not the same everywhere."""


def nearest(constant: float) -> float:
    """The float32 nearest to a constant of the configuration: its products with the float32 state are exact."""
    return float(np.float32(constant))


def rounded(learning_rate: float, momentum: float) -> dict[str, float]:
    """The constants as portable numerics use them. UsageError for one that becomes zero or infinite."""
    given = {"params.learning_rate": learning_rate, "params.momentum": momentum}
    with np.errstate(over="ignore"):
        counted = {key: nearest(value) for key, value in given.items()}
    for key, value in counted.items():
        if math.isinf(value) or (value < TINY and given[key] > 0):
            raise UsageError(
                f"portable numerics: {key}={given[key]} is no float32 of a size that counts; "
                f"it must lie between {TINY:.2g} and 3.4e+38"
            )
    return counted
