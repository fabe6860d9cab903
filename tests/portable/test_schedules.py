"""Learning rates: float32 numbers, of exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest

from repro.portable import schedules


def test_linear_goes_up_and_down_in_lines() -> None:
    results = [schedules.linear(step, steps=8, peak=0.3, low=0.1, warmup=4) for step in range(10)]
    top, low = Fraction(0.3), Fraction(0.1)
    exact = [top * n / 4 for n in (1, 2, 3, 4)] + [low + (top - low) * n / 4 for n in (4, 3, 2, 1, 0, 0)]
    assert results == [float(np.float32(float(rate))) for rate in exact]


def test_staircase_is_a_product_rounded_once() -> None:
    results = [schedules.staircase(step, 0.1, milestones=(2, 3)) for step in range(5)]
    assert results == [float(np.float32(rate)) for rate in (0.1, 0.1, 0.01, 0.001, 0.001)]


def test_cosine_goes_down_half_a_wave() -> None:
    results = [schedules.cosine(step, steps=10, peak=1.0, low=0.2, warmup=2) for step in range(12)]
    wave = 0.2 + 0.8 * (1 + np.cos(np.pi * np.arange(8) / 8)) / 2
    assert results[:2] == [0.5, 1.0] and results[10:] == [float(np.float32(0.2))] * 2
    assert results[2:10] == pytest.approx(wave, rel=1e-7)
    assert all(float(np.float32(rate)) == rate for rate in results)
