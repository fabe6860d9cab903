"""Zeros, NaN and rounded numbers in what is hashed."""

import struct

import pytest

from repro.observe import contents

NAN, MANY = float("nan"), 20_000


def packed(dtype: str, *values: float) -> bytes:
    if dtype == "bfloat16":
        return b"".join(struct.pack("<f", value)[2:] for value in values)
    return struct.pack(f"<{len(values)}{contents.FORMATS[dtype]}", *values)


def condition(dtype: str, content: bytes) -> str:
    contents.look("code", dtype, content)
    result = contents.conditions({"weights": {"w": "code"}, "batch": {"x": "code"}})
    contents.zero.clear()
    contents.nan.clear()
    for codes in contents.rounded.values():
        codes.clear()
    assert all(named == {"weights": ["w"]} for named in result.values()) and len(result) < 2
    return "".join(result)


@pytest.mark.parametrize("dtype", [*contents.FORMATS, "bfloat16"])
def test_arrays_of_zeros_and_arrays_that_hold_a_nan(dtype: str) -> None:
    assert condition(dtype, packed(dtype, 0.0, -0.0)) == "zero"
    assert condition(dtype, packed(dtype, *[0.0] * MANY)) == "zero"
    assert condition(dtype, packed(dtype, *[0.0] * MANY, 1.1, *[0.0] * MANY)) == ""
    assert condition(dtype, packed(dtype, 1.1, 2.0)) == ""
    assert condition(dtype, packed(dtype, 1.0, NAN)) == "nan"
    assert condition(dtype, packed(dtype, *[1.0] * MANY, NAN)) == "nan"
    assert condition(dtype, packed(dtype, float("inf"), -1.1)) == ""
    assert condition(dtype, b"") == ""


def test_the_smallest_numbers_are_no_zeros() -> None:
    """The bytes of this one are those of zeros of either sign, too."""
    assert condition("float32", b"\x80\0\0\0") == ""
    assert condition("float32", b"\0" * 4 * MANY + b"\0\x80\0\0") != "zero"


def test_whole_numbers_are_not_looked_at() -> None:
    assert condition("int64", b"\0" * 8) == condition("bool", b"\0") == ""


@pytest.mark.parametrize(
    ("kind", "value"), [("bfloat16", 1 + 2**-7), ("float16", 1 + 2**-10), ("", 1 + 2**-11), ("", 1 + 2**-23)]
)
def test_float32_numbers_of_fewer_bits_are_rounded(kind: str, value: float) -> None:
    assert condition("float32", packed("float32", value, -value)) == kind
    assert condition("float32", packed("float32", *[1.0] * MANY, value)) == kind
    assert condition("float64", packed("float64", value)) == condition("float16", packed("float16", value)) == ""
