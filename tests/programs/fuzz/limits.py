"""How far from float64 a result may be, by operation, as docs/reference/specification.md has it."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Limit:
    """A result is right within `ulps` units in its last place, or within `share` of the largest number of its array."""

    ulps: float = 2
    share: float = 0
    compared: bool = True
    """False for random numbers and for contents of memory."""

    def accepts(self, ulps: np.ndarray, shares: np.ndarray) -> np.ndarray:
        return (ulps <= self.ulps) | (shares <= self.share)


FUNCTION = Limit()
"""A function of one or two numbers."""
LIMITS: dict[str, dict[str, Limit]] = {"pytorch": {}, "tensorflow": {}, "jax": {}}
"""Limits by framework and operation; all others are functions of numbers."""


def limit_of(framework: str, operation: str) -> Limit:
    return LIMITS[framework].get(operation, FUNCTION)
