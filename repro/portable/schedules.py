"""Schedules of learning rates, exact in float32.

A rate is a function of the number of the update, counted from 0.
Frameworks' own schedules call functions of the C library. These are called before each update:

    for group in optimizer.param_groups:
        group["lr"] = schedules.cosine(step, steps=1000, peak=1e-3, warmup=100)
"""

from collections.abc import Sequence
from fractions import Fraction

from repro.portable.numbers.tables import cosine, float32

__all__ = ["cosine", "linear", "staircase"]


def linear(step: int, steps: int, peak: float, low: float = 0.0, warmup: int = 0) -> float:
    """Rises in a line for `warmup` updates, then falls in a line to `low`, which is reached after `steps` updates."""
    if step < warmup:
        return float32(float(Fraction(peak) * (step + 1) / warmup))
    left = Fraction(max(0, steps - step), max(1, steps - warmup))
    return float32(float(Fraction(low) + (Fraction(peak) - Fraction(low)) * left))


def staircase(step: int, peak: float, milestones: Sequence[int], factor: float = 0.1) -> float:
    """The peak, times the factor from each of the milestones on, which are numbers of updates."""
    passed = sum(step >= milestone for milestone in milestones)
    return float32(float(Fraction(peak) * Fraction(factor) ** passed))
