"""Arrays between pages without access, for kernels: one that reads or writes outside dies of SIGSEGV."""

import ctypes
import math
import mmap

import numpy as np

NO_ACCESS = 0
"""PROT_NONE of POSIX, which Python's mmap does not name."""
SIDES = "after", "before"
"""The side on which an array touches a guard; the other has room up to the next page, so a kernel is run with both."""


def guarded(shape: tuple[int, ...], dtype: type, side: str) -> np.ndarray:
    """An array of zeros, with the guard right after its last element, or right before its first one."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    room = max(1, -(-size // mmap.PAGESIZE)) * mmap.PAGESIZE
    memory = mmap.mmap(-1, room + 2 * mmap.PAGESIZE)
    start = np.frombuffer(memory, np.uint8).ctypes.data
    for guard in (start, start + mmap.PAGESIZE + room):
        if ctypes.CDLL(None).mprotect(ctypes.c_void_p(guard), ctypes.c_size_t(mmap.PAGESIZE), NO_ACCESS):
            raise OSError(f"mprotect of the page at {guard:#x} failed")
    offset = mmap.PAGESIZE + (room - size if side == "after" else 0)
    return np.frombuffer(memory, dtype, math.prod(shape), offset).reshape(shape)


def copied(array: np.ndarray, side: str) -> np.ndarray:
    """The same elements, by rows, beside a guard."""
    result = guarded(array.shape, array.dtype.type, side)
    result[...] = array
    return result


def touch(side: str, index: int, write: bool) -> None:
    """Reads or writes an element of an array of three, or one that it does not have."""
    array = guarded((3,), np.int16, side)
    element = ctypes.c_int16.from_address(array.ctypes.data + 2 * index)
    element.value = 1 if write else element.value
