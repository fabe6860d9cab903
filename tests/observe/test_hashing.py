"""Hashes of tensors: of all that makes one what it is, or none with a reason."""

import hashlib
import json
import struct
from pathlib import Path
from typing import Any

import numpy
import pytest

from repro.observe import generators, hashing, recorder
from support.programs import program

ALIKE = {
    "parameter": "dense",
    "subclass": "dense",
    "expanded": "dense",
    "transposed": "in rows",
    "negative bit": "negative",
    "conjugate bit": "conjugate",
    "zero tensor": "zeros",
}
NONE = {
    "wrapper": "Wrapper has no __tensor_flatten__, which would say where its values are",
    "freed": "its memory was freed",
}


@pytest.fixture(scope="module")
def tensors() -> dict[str, dict[str, str]]:
    content: dict[str, dict[str, str]] = json.loads(program("pytorch", "observed/tensors.py"))
    return content


@pytest.fixture
def hashes(tensors: dict[str, dict[str, str]]) -> dict[str, str]:
    return tensors["alone"]


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


def test_tensors_that_are_hashed_together_have_the_hashes_of_each(tensors: dict[str, dict[str, str]]) -> None:
    alone = {name: code for name, code in tensors["alone"].items() if name not in NONE}
    assert tensors["together"] == alone


def test_arrays_and_scalars_that_are_hashed_together_have_the_hashes_of_each() -> None:
    """Large ones are hashed in several threads, and all come in their own order."""
    large = numpy.arange(1 << 18, dtype="f4")
    mixed = [large, 0.5, large[::2], None, numpy.array(["text"]), large.astype(">f4"), "text", large.reshape(2, -1).T]
    arrays = [(("weights", "buffers")[place % 2], str(place), value) for place, value in enumerate(mixed)]
    codes = hashing.hash_arrays(arrays)
    assert list(codes["weights"]) == ["0", "2", "4", "6"] and list(codes["buffers"]) == ["1", "3", "5", "7"]
    assert codes["weights"] | codes["buffers"] == {name: hashing.hash_leaf(value) for _, name, value in arrays}


def test_an_array_that_cannot_be_hashed_with_others_is_named_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As where a full disk takes the bytes of one array, and not those of the next."""
    store = hashing._store

    def full(folder: str, name: str, head: bytes, content: bytes) -> None:
        if head.startswith(b"float64"):
            raise OSError(28, "No space left on device")
        store(folder, name, head, content)

    unseen: list[str] = []
    monkeypatch.setattr(hashing, "_store", full)
    monkeypatch.setattr(hashing, "content_folder", str(tmp_path))
    monkeypatch.setattr(recorder, "unseen", unseen.append)
    codes = hashing.hash_arrays([("weights", dtype, numpy.zeros(2, dtype)) for dtype in ("f4", "f8", "i4")])
    assert list(codes["weights"]) == ["f4", "i4"]
    assert [text.partition(" is not hashed")[0] for text in unseen] == ["f8 (weights), of type ndarray,"]
    assert len(list(tmp_path.iterdir())) == 2


def test_the_hash_of_a_generator_follows_its_state() -> None:
    """Also where a draw uses what the last one had left, which moves no other part of NumPy's state."""
    numpy.random.seed(0)
    codes = [generators.hashes()["numpy"]]
    for _ in range(3):
        numpy.random.standard_normal()
        codes.append(generators.hashes()["numpy"])
    state: Any = numpy.random.get_state()
    name, words, *others, gauss = state
    text = repr((name, words.tolist(), *others, float(gauss).hex()))
    assert len(set(codes)) == 4 and codes[-1] == hashing.hash_text("state", text)
    numpy.random.seed(0)
    assert generators.hashes()["numpy"] == codes[0]


def test_arrays_of_numpy() -> None:
    values = numpy.arange(3, dtype="<f4")
    dense = hashing.hash_leaf(values)
    assert hashing.hash_leaf(values.astype(">f4")) == dense  # by values
    masks = [numpy.ma.array(values, mask=mask) for mask in ([False] * 3, [False, True, False])]
    assert len({dense, *map(hashing.hash_leaf, masks)}) == 3
    fields = [numpy.zeros(2, [(name, "f4"), ("b", "i4")]) for name in ("a", "c")]
    assert len(set(map(hashing.hash_leaf, fields))) == 2
