"""Machine code for arrays, on some threads."""

import ctypes
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import tensorflow as tf

from repro.portable.kernels import machine

compiling = threading.RLock()
"""Held while code is made: nodes of a graph run on several threads."""
SHARE = 2**15
"""Elements that are worth a thread."""


class Code:
    """A function of the addresses of arrays, and of units to begin and to end with."""

    def __init__(self, module: Any, name: str = "call") -> None:
        self.engine = machine.code(str(module), machine.SMALL)
        kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
        self.function = kind(self.engine.get_function_address(name))

    def __call__(self, arrays: Sequence[np.ndarray], units: int, work: int) -> None:
        """Of all units, over this number of elements."""
        given = (ctypes.c_void_p * len(arrays))(*[array.__array_interface__["data"][0] for array in arrays])
        shares = max(1, min(count(), units, work // SHARE))
        if shares == 1:
            self.function(given, 0, units)
            return
        ends = [units * number // shares for number in range(shares + 1)]
        others = [_pool().submit(self.function, given, *pair) for pair in pairwise(ends[1:])]
        self.function(given, 0, ends[1])
        wait(others)


@cache
def count() -> int:
    """The threads of TensorFlow's own operations."""
    asked = tf.config.threading.get_intra_op_parallelism_threads() or os.environ.get("TF_NUM_INTRAOP_THREADS", "")
    return int(asked) if str(asked).isdecimal() and int(asked) else len(os.sched_getaffinity(0))


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(1, count() - 1), "portable")


os.register_at_fork(after_in_child=_pool.cache_clear)
