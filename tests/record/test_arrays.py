"""By how much two records differ, from arrays that may be anybody's."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from repro.compare.difference import first_difference
from repro.compare.distance import distance
from repro.record import record
from support.commands import straight, write


def content(array: np.ndarray, dtype: str | None = None) -> bytes:
    return f"{dtype or array.dtype.name} {','.join(map(str, array.shape))}\n".encode() + array.tobytes()


def keeping(path: Path, values: bytes) -> record.Record:
    """A record whose weights after step 2 are these."""
    digest = hashlib.sha256(values).hexdigest()
    write(path, straight(weights={2: digest}))
    (path / "kept").mkdir()
    (path / "kept" / digest).write_bytes(values)
    return record.read(path)


def far(tmp_path: Path, one: bytes, other: bytes) -> str:
    a, b = keeping(tmp_path / "a", one), keeping(tmp_path / "b", other)
    difference = first_difference(a, b)
    assert difference and (difference.step, difference.channel) == (2, "weights")
    return str(distance(a, b, difference))


def test_one_bit_of_a_float32(tmp_path: Path) -> None:
    one = np.ones((2, 3), np.float32)
    other = one.copy()
    other[1, 2] = np.nextafter(np.float32(1), np.float32(2))
    assert far(tmp_path, content(one), content(other)) == "`w`: 1 of 6 elements, up to 1 ulp, relative 4.9e-08"


def test_whole_numbers_and_the_sign_of_a_zero(tmp_path: Path) -> None:
    assert far(tmp_path, content(np.arange(4)), content(np.arange(4) * 2)) == "`w`: 3 of 4 elements, relative 1.0e+00"
    zeros = np.zeros(2, np.float64)
    assert far(tmp_path / "z", content(zeros), content(-zeros)) == "`w`: 2 of 2 elements, relative 0.0e+00"


@pytest.mark.parametrize(
    "bad",
    [
        b"",
        b"float32",
        b"float32 9\n1234",
        b"float32 -1\n",
        b"object 1\n12345678",
        b"bfloat16 2\n1234",
        b"state \nxyz",
        b"float32 " + b"9" * 30 + b"\n1234",
        content(np.ones(3, np.float32)),
        content(np.ones((2, 3), np.float64)),
    ],
)
def test_what_cannot_be_laid_side_by_side_is_not_measured(bad: bytes, tmp_path: Path) -> None:
    assert far(tmp_path, content(np.ones((2, 3), np.float32)), bad) == "None"


def test_kinds_that_have_no_such_distance(tmp_path: Path) -> None:
    assert far(tmp_path, b"complex64 1\n12345678", b"complex64 1\n12345679") == "None"


def test_an_array_that_is_not_what_its_name_says(tmp_path: Path) -> None:
    a, b = (keeping(tmp_path / name, content(np.full(2, value))) for name, value in (("a", 1.0), ("b", 2.0)))
    (file,) = (tmp_path / "b" / "kept").iterdir()
    file.write_bytes(content(np.full(2, 9.0)))
    difference = first_difference(a, b)
    assert difference and distance(a, b, difference) is None
