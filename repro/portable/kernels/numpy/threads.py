"""Machine code for arrays, on some threads."""

import ctypes
import math
import os
import threading
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import tensorflow as tf

from repro.portable.kernels import machine
from repro.portable.kernels.numpy.programs import listening
from repro.portable.kernels.numpy.workers import workers

compiling = threading.RLock()
"""A lock that is held while code is made: nodes of a graph run on several threads."""
SHARE = 2**17
"""Elements that are worth a thread."""
BRIEF = 2**13
"""Elements of a call that is over sooner than Python's lock is handed on."""
LARGE, ALIGNMENT = 2**14, 64
"""Bytes of an array that is not worth a copy, and those that TensorFlow's arrays begin at a multiple of."""


class Code:
    """A function of the addresses of arrays, and of units to begin and to end with."""

    def __init__(self, module: Any, name: str = "call") -> None:
        self.address = machine.code(str(module), machine.SMALL)[name]
        given = None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
        self.function, self.brief = ctypes.CFUNCTYPE(*given)(self.address), ctypes.PYFUNCTYPE(*given)(self.address)

    def __call__(self, arrays: Sequence[np.ndarray], units: int, work: int) -> None:
        """Runs all units of work, over this number of elements. Threads busy with another call are not waited for."""
        self.at(_addresses(len(arrays))(*map(address, arrays)), units, work)

    def at(self, given: Any, units: int, work: int) -> None:
        """Runs as __call__ does, with an array of the addresses."""
        shares = 1 if work < BRIEF else min(count(), units, work // SHARE)
        if listening.recorder is not None:
            listening.recorder.call(self, list(given), units, shares)
        if work < BRIEF:
            self.brief(given, 0, units)
        elif shares < 2 or not workers(count() - 1).share(self.address, given, units, shares):
            self.function(given, 0, units)


_addresses = cache(lambda number: ctypes.c_void_p * number)
HEAD = object.__basicsize__
"""Bytes of an array, as NumPy's C interface has it, before the address of its numbers."""


def address(x: np.ndarray) -> Any:
    """The address of an array's numbers, ten times as fast as by the array's own attributes."""
    return ctypes.c_void_p.from_address(id(x) + HEAD).value


def empty(shape: Sequence[int], dtype: Any) -> np.ndarray:
    """An array for results. Where it is large it is aligned: TensorFlow takes it as it is, and copies all others."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size < LARGE and listening.recorder is None:
        return np.empty(shape, dtype)
    memory = np.empty(size + ALIGNMENT, np.uint8)
    begin = -address(memory) % ALIGNMENT
    result = memory[begin : begin + size].view(dtype).reshape(shape)
    if listening.recorder is not None:
        listening.recorder.rooms.append(result)
    return result


@cache
def count() -> int:
    """The threads of TensorFlow's own operations."""
    asked = tf.config.threading.get_intra_op_parallelism_threads() or os.environ.get("TF_NUM_INTRAOP_THREADS", "")
    return (
        int(asked) if str(asked).isdecimal() and int(asked) else sum(1 for _ in os.sched_getaffinity(0))
    )  # see modes/common/cores.py
