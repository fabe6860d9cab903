"""Kernels one after another, over memory that each thread keeps."""

import ctypes
import threading
from typing import Any

import numpy as np

from repro.portable import kernels
from repro.portable.backends.numpy import Array

if kernels.available:
    from repro.portable.kernels.numpy.programs import listening
    from repro.portable.kernels.numpy.threads import Code, address, empty

ALIGNMENT = 64
KEPT = 2**26
"""Bytes of memory that a thread may keep."""


class _Thread(threading.local):
    memory = np.empty(0, np.uint8)


_thread = _Thread()


def _memory(size: int) -> Array:
    if listening.recorder is not None:
        return empty((size + ALIGNMENT,), np.uint8)
    if size + ALIGNMENT <= len(_thread.memory):
        return _thread.memory
    memory = np.empty(size + ALIGNMENT, np.uint8)
    if size <= KEPT:
        _thread.memory = memory
    return memory


class Chain:
    """Steps over arrays that are given, the last of which is the result, and over others between."""

    def __init__(self, given: int) -> None:
        self.given, self.size = given, 0
        self.places: list[int] = []
        self.steps: list[tuple[Code, tuple[int, ...], int, int, Any]] = []

    def room(self, numbers: int, dtype: Any) -> int:
        """A new array between: its number."""
        self.places.append(self.size)
        self.size += -(-numbers * np.dtype(dtype).itemsize // ALIGNMENT) * ALIGNMENT
        return self.given + len(self.places) - 1

    def step(self, code: "Code", arrays: tuple[int, ...], units: int, work: int) -> None:
        """A kernel of arrays of these numbers."""
        self.steps.append((code, arrays, units, work, ctypes.c_void_p * len(arrays)))

    def __call__(self, *arrays: Array) -> None:
        memory = _memory(self.size)
        begin, *addresses = map(address, (memory, *arrays))
        begin += -begin % ALIGNMENT
        addresses += [begin + place for place in self.places]
        for code, numbers, units, work, kind in self.steps:
            code.at(kind(*[addresses[number] for number in numbers]), units, work)
