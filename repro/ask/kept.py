"""By how much two records differ, where `repro record --keep` kept the arrays: DIR/kept/SHA256, each as it was hashed.

A file holds the line `<dtype> <shape>`, then the bytes of the array, little-endian and in C order; its name is the
SHA-256 of all that. It is believed only if that is so.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from repro.ask.channels import Difference
from repro.ask.compare import relative, ulps
from repro.ask.record import KEPT, Record

LARGEST = 4 << 30  # bytes of a file that is read
KINDS = "fiub"  # floats, integers, booleans


@dataclass(frozen=True)
class Distance:
    """How far two arrays are apart."""

    name: str
    elements: int
    """That differ."""
    size: int
    relative: float
    """The norm of the difference over that of the first, L2."""
    ulps: int | None
    """The largest distance in units in the last place, for float32."""

    def __str__(self) -> str:
        most = f"up to {self.ulps} ulp, " if self.ulps is not None else ""
        return f"`{self.name}`: {self.elements} of {self.size} elements, {most}relative {self.relative:.1e}"


def distance(a: Record, b: Record, found: Difference) -> Distance | None:
    """How far apart the first names of a difference are that both records kept; None where they kept none."""
    both = found.pair.hashes(found.step, found.channel) if found.pair and found.step is not None else None
    for name in found.names if both else ():
        assert both is not None
        x, y = _array(a.path, both[0].get(name)), _array(b.path, both[1].get(name))
        if x is None or y is None or x.shape != y.shape or x.dtype != y.dtype:
            continue
        bits = [array.reshape(-1).view(f"V{array.itemsize}") for array in (x, y)]
        float32 = x.dtype == np.float32 and x.size > 0
        return Distance(name, int((bits[0] != bits[1]).sum()), x.size, relative(x, y), ulps(x, y) if float32 else None)
    return None


def _array(record: Path, digest: str | None) -> np.ndarray | None:
    """A kept array; None where it is not there, is not what its name says, or has a type that NumPy does not know."""
    path = record / KEPT / str(digest)
    if digest is None or not path.is_file() or path.stat().st_size > LARGEST:
        return None
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != digest:
        return None
    head, _, values = content.partition(b"\n")
    dtype, _, shape = head.decode(errors="replace").partition(" ")
    try:
        kind = np.dtype(dtype).newbyteorder("<")
        sizes = tuple(int(size) for size in shape.split(",") if size)
        return np.frombuffer(values, kind).reshape(sizes) if kind.kind in KINDS else None
    except (TypeError, ValueError):
        return None
