"""Merkle tree over the steps of a record, hashed as RFC 9162, section 2.1, has it.

A leaf is the SHA-256 of a zero byte and of what the step computed; a node that of a one byte and of its two children. A node
covers the steps from `first` to `last`, and its left child the largest power of two of them that leaves some for the right.
"""

import hashlib
import json
from collections.abc import Sequence

from repro.record.lines import COPIES
from repro.record.record import Record

LEAF, NODE = b"\0", b"\1"
UNCOMMITTED = ("generator", COPIES)
"""Channels outside of a leaf: a generator that nobody draws from, and Python's garbage, may differ between equal runs."""

Range = tuple[int, int]
"""The number of the first leaf of a node, and of the one after its last."""


def leaves(record: Record) -> list[bytes]:
    """The leaf of each step of a record, from step 0 on, which is before the first one."""
    steps = sorted({step for process in record.processes for step in process.steps})
    return [hashlib.sha256(LEAF + content(record, step)).digest() for step in steps]


def content(record: Record, step: int) -> bytes:
    """What a leaf commits to: `[step, [[label of the process, {channel: {name: hash}}], ...]]`, as JSON with sorted keys."""
    processes = [
        [process.label, {name: of for name, of in process.steps[step].items() if name not in UNCOMMITTED}]
        for process in record.processes
        if step in process.steps
    ]
    return json.dumps([step, processes], sort_keys=True, separators=(",", ":")).encode()


def node(leaves: Sequence[bytes], covered: Range | None = None) -> bytes:
    """The hash of the node over some leaves, all of them without `covered`. There must be one."""
    first, end = covered or (0, len(leaves))
    if end - first == 1:
        return leaves[first]
    left, right = children((first, end))
    return hashlib.sha256(NODE + node(leaves, left) + node(leaves, right)).digest()


def children(covered: Range) -> tuple[Range, Range]:
    """The leaves of the two children of a node that has more than one."""
    first, end = covered
    middle = first + (1 << (end - first - 1).bit_length() - 1)
    return (first, middle), (middle, end)
