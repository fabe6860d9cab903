"""Self-checks of the modes: the bits of small cases, and what a check leaves as it was."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from repro.portable.modes.common.precision import setting
from repro.portable.numbers.precisions import SLICES


def fingerprint(arrays: Iterable[Any]) -> str:
    """The first 16 digits of the SHA-256 of all bits."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


@cache
def published(module: str) -> dict[str, str]:
    """The fingerprint of each case, by checks.txt beside the file of a module."""
    lines = Path(module).with_name("checks.txt").read_text().splitlines()
    return dict(reversed(line.split(maxsplit=1)) for line in lines)  # type: ignore[misc]


@contextmanager
def apart(*counters: Counter[str]) -> Iterator[None]:
    """Counts no operation, and computes with the precision `high`, whatever the mode has."""
    counted, precision = [counter.copy() for counter in counters], setting.slices
    setting.slices = SLICES["high"]
    try:
        yield
    finally:
        setting.slices = precision
        for counter, before in zip(counters, counted, strict=True):
            counter.clear()
            counter.update(before)
