"""Hashes of tensors: of all that makes one what it is, or none with a reason."""

import hashlib
import json
import struct

import numpy
import pytest

from repro.observe import hashing
from support.programs import program

ALIKE = {
    "parameter": "dense",
    "subclass": "dense",
    "expanded": "dense",
    "negative bit": "negative",
    "conjugate bit": "conjugate",
    "zero tensor": "zeros",
}
NONE = {
    "wrapper": "Wrapper has no __tensor_flatten__, which would say where its values are",
    "freed": "its memory was freed",
}


@pytest.fixture(scope="module")
def hashes() -> dict[str, str]:
    content: dict[str, str] = json.loads(program("pytorch", "observed/tensors.py"))
    return content


def test_a_dense_tensor_is_hashed_as_ever(hashes: dict[str, str]) -> None:
    """Records of all versions hold these: dtype, shape, values."""
    values = struct.pack("<3f", 1, 1, 1)
    assert hashes["dense"] == hashlib.sha256(b"float32 3\n" + values).hexdigest()
    assert hashes["bfloat16"] == hashlib.sha256(b"bfloat16 3\n" + b"\x80\x3f" * 3).hexdigest()
    assert hashes["empty"] == hashlib.sha256(b"float32 0,3\n").hexdigest()


def test_values_decide_and_not_how_memory_holds_them(hashes: dict[str, str]) -> None:
    assert {name: hashes[name] for name in ALIKE} == {name: hashes[other] for name, other in ALIKE.items()}


def test_what_is_another_tensor_has_another_hash(hashes: dict[str, str]) -> None:
    """Of other scales, zero points, axes, shapes, layouts, lengths, inner tensors."""
    others = [code for name, code in hashes.items() if name not in ALIKE | NONE]
    assert len(others) == len(set(others)) == len(hashes) - len(ALIKE) - len(NONE)
    assert all(len(code) == 64 for code in others)


def test_what_cannot_be_read_is_not_read(hashes: dict[str, str]) -> None:
    """Neither address 0, nor memory that is gone; and nothing of the program's is called for it."""
    assert {name: hashes[name] for name in NONE} == NONE


def test_arrays_of_numpy() -> None:
    values = numpy.arange(3, dtype="<f4")
    dense = hashing.hash_leaf(values)
    assert hashing.hash_leaf(values.astype(">f4")) == dense  # by values
    masks = [numpy.ma.array(values, mask=mask) for mask in ([False] * 3, [False, True, False])]
    assert len({dense, *map(hashing.hash_leaf, masks)}) == 3
    fields = [numpy.zeros(2, [(name, "f4"), ("b", "i4")]) for name in ("a", "c")]
    assert len(set(map(hashing.hash_leaf, fields))) == 2
