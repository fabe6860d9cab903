"""Programs: the kernels that a definition calls for arrays of some shapes, one after another, without Python.

A recorder listens while a definition runs, and notes each kernel with the places of its arrays: in what is given, in a
result, or in memory between. What a kernel takes from anywhere else was made by NumPy: such a definition has no program.
"""

import ctypes
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

HEAD = 9
NEXT, LENGTH, SIGNATURE, OUTPUTS, RESULTS, COUNT, CALLS, SCRATCH, SHARED = range(HEAD)
"""The words of a program: the next program; the number of words and the address of its signature; number and address of its
results, and of its calls; bytes of memory between; whether threads share its kernels."""
RESULT = 4
"""The words of a result: its type as TensorFlow counts them, its rank, the address of its shape, bytes."""
CALL = 5
"""The words of a call: the address of a kernel, units, shares, number and places of its arrays. A place is two words, an
array and the bytes before it: arrays that are given, then results, then memory between, then addresses as they are."""
MOST = 64
"""Arrays of a kernel at most."""
ALIGNMENT = 64


Place = tuple[list[np.ndarray], int, int]
"""The arrays of a kind, the number of one of them, and the bytes in it before an address."""


class UnknownMemoryError(Exception):
    """A kernel takes an array that is neither given nor made for kernels."""


class Recorder:
    """The kernels that this thread calls for these arrays, as a context: an array is known by where it lies."""

    def __init__(self, inputs: Sequence[np.ndarray]) -> None:
        self.inputs = list(inputs)
        self.rooms: list[np.ndarray] = []
        """Memory that kernels write. It is kept, so that no other array has its addresses."""
        self.constants: list[np.ndarray] = []
        self.calls: list[tuple[Any, list[Place], int, int]] = []
        self.unknown = False
        """True if a kernel took an array that is none of these."""

    def call(self, code: Any, addresses: Sequence[int], units: int, shares: int) -> None:
        """Notes a kernel. Where its arrays lie is looked up now: later, other arrays may lie there."""
        if len(addresses) > MOST:
            self.unknown = True
        places = [self._place(address) for address in addresses]
        self.calls.append((code, places, units, shares))

    def _place(self, address: int) -> "Place":
        for kind in (self.inputs, self.rooms, self.constants):
            for number, x in enumerate(kind):
                before = address - _begin(x)
                if 0 <= before < x.nbytes:
                    return kind, number, before
        self.unknown = True
        return self.inputs, 0, 0

    def __enter__(self) -> "Recorder":
        self.before, listening.recorder = listening.recorder, self
        return self

    def __exit__(self, *_: object) -> None:
        listening.recorder = self.before


class Unheard:
    """A context whose kernels are part of no program."""

    def __enter__(self) -> None:
        self.before, listening.recorder = listening.recorder, None

    def __exit__(self, *_: object) -> None:
        listening.recorder = self.before


class _Thread(threading.local):
    recorder: Recorder | None = None


listening = _Thread()


class Program:
    """What a recorder heard, as words in memory."""

    def __init__(self, heard: Recorder, results: Sequence[np.ndarray], types: Sequence[int], signature: Any) -> None:
        """UnknownMemoryError where the results are not made by kernels alone."""
        if heard.unknown:
            raise UnknownMemoryError("an array that NumPy made")
        self.heard, self.kept = heard, [signature]
        targets = [self._room(result) for result in results]
        if len(set(targets)) < len(targets):
            raise UnknownMemoryError("a result that is returned twice")
        given, size = len(heard.inputs), 0
        rooms: list[tuple[int, int]] = []
        for number, room in enumerate(heard.rooms):
            if number in targets:
                rooms.append((given + targets.index(number), 0))
            else:
                rooms.append((given + len(targets), size))
                size += -(-room.nbytes // ALIGNMENT) * ALIGNMENT
        begins = {
            id(heard.inputs): [(number, 0) for number in range(given)],
            id(heard.rooms): rooms,
            id(heard.constants): [(given + len(targets) + 1, _begin(x)) for x in heard.constants],
        }
        outputs, calls = [], []
        for result, type_ in zip(results, types, strict=True):
            outputs += [type_, result.ndim, self._words(result.shape), result.nbytes]
        for code, places, units, shares in heard.calls:
            words: list[int] = []
            for kind, number, before in places:
                array, begin = begins[id(kind)][number]
                words += [array, begin + before]
            calls += [code.address, units, shares, len(places), self._words(words)]
        shared = any(shares > 1 for *_, shares in heard.calls)
        made, called = self._words(outputs), self._words(calls)
        head = [0, len(signature), ctypes.addressof(signature), len(results), made, len(heard.calls), called]
        self.size, self.address = size, self._words([*head, size, shared])
        self.words = self.kept[-1]
        heard.inputs, heard.rooms = [], []

    def _words(self, numbers: Sequence[int]) -> int:
        words = (ctypes.c_int64 * max(1, len(numbers)))(*numbers)
        self.kept.append(words)
        return ctypes.addressof(words)

    def _room(self, result: np.ndarray) -> int:
        for number, room in enumerate(self.heard.rooms):
            if _begin(room) == _begin(result) and room.nbytes == result.nbytes and result.flags.c_contiguous:
                return number
        raise UnknownMemoryError("a result that NumPy made")


def apart(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Arrays of which none lies in another: where one does, a copy."""
    result: list[np.ndarray] = []
    for x in arrays:
        result.append(x.copy() if any(np.may_share_memory(x, other) for other in result) else x)
    return result


def _begin(x: np.ndarray) -> int:
    return x.__array_interface__["data"][0]
