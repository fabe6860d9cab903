"""PyTorch's library of threads."""

import ctypes
import os
from functools import cache
from pathlib import Path

import torch


@cache
def gnu_openmp() -> ctypes.CDLL | None:
    """PyTorch's OpenMP, if it is GNU's."""
    own = sorted((Path(torch.__file__).parent / "lib").glob("libgomp*.so*"))
    try:
        return ctypes.CDLL(str(own[0]) if own else "libgomp.so.1", mode=os.RTLD_NOLOAD)
    except (OSError, AttributeError):
        return None
