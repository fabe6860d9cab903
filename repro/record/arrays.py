"""Arrays that a record holds.

`repro record --keep` writes them to DIR/kept/SHA256, each as it was hashed. A file holds the line `<dtype> <shape>`, then the bytes of the array, little-endian and in C order; its name is the
SHA-256 of all that. It is believed only if that is so.
"""

import hashlib
from pathlib import Path

import numpy as np

from repro.files import read

LARGEST = 4 << 30  # the most bytes of a file that is read
KINDS = "fiub"  # floats, integers, booleans


def array(folder: Path, digest: str) -> np.ndarray | None:
    """A kept array; None where it is not there, is not what its name says, or has a type that NumPy does not know."""
    try:
        content = read(folder / digest, LARGEST)
    except OSError:
        return None
    if hashlib.sha256(content).hexdigest() != digest:
        return None
    head, _, values = content.partition(b"\n")
    dtype, _, shape = head.decode(errors="replace").partition(" ")
    try:
        kind = np.dtype(dtype).newbyteorder("<")
        sizes = tuple(int(size) for size in shape.split(",") if size)
        return np.frombuffer(values, kind).reshape(sizes) if kind.kind in KINDS else None
    except (TypeError, ValueError, OverflowError, SyntaxError):  # an invalid type or shape
        return None
