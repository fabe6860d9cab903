"""SHA-256 of named arrays.

Equal fingerprints mean that every bit is equal.
"""

import hashlib
from collections.abc import Mapping

import numpy as np


def fingerprint(arrays: Mapping[str, np.ndarray]) -> str:
    """`sha256:<64 hex digits>` of the arrays' names, dtypes, shapes and values.

    For each name in sorted order, the line `<name> <dtype> <shape>\\n` (dtype as NumPy spells it, shape as decimals
    separated by commas) is hashed, then the values in C order as little-endian bytes. The sign of a zero counts, and
    the payload of a NaN.
    """
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        shape = ",".join(str(size) for size in arrays[name].shape)
        digest.update(f"{name} {array.dtype.name} {shape}\n".encode())
        digest.update(array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes())
    return f"sha256:{digest.hexdigest()}"
