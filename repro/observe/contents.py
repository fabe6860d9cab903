"""Zeros and NaN in what is hashed.

All of an array is read only where its beginning is zero. NaN is looked for at both ends: a loss that is NaN makes all
of a gradient NaN.
"""

import functools
import struct
from collections.abc import Iterable
from typing import Any

ENDS, PIECE = 64, 1 << 16  # bytes that are examined
MOST = 100_000  # hashes that are remembered
FORMATS = {"float16": "e", "float32": "f", "float64": "d"}
CHANNELS = ("initial weights", "gradients", "weights")

zero: set[str] = set()  # hashes of arrays that contain only zeros
nan: set[str] = set()  # hashes of arrays that contain a NaN


def look(code: str, dtype: str, content: Any) -> None:
    """Remembers the hash of an array whose bytes are zeros alone, or hold a NaN."""
    if dtype not in FORMATS and dtype != "bfloat16":
        return
    for codes in (zero, nan):
        if len(codes) > MOST:
            codes.clear()
    size = len(content)
    head = _numbers(dtype, bytes(content[:ENDS]))
    if _holds_nan(head) or (size > ENDS and _holds_nan(_numbers(dtype, bytes(content[size - ENDS :])))):
        nan.add(code)
    elif size and not any(head) and all(_is_zero(dtype, content[at : at + PIECE]) for at in range(0, size, PIECE)):
        zero.add(code)


def _holds_nan(numbers: tuple[float, ...]) -> bool:
    total = sum(numbers)  # NaN if a number is; looked at one by one only then, as opposite infinities give NaN, too
    return total != total and any(number != number for number in numbers)


def _is_zero(dtype: str, piece: Any) -> bool:
    """True if a piece has only zeros, of either sign."""
    rest = bytes(piece).translate(None, b"\0")
    return not rest or (not rest.strip(b"\x80") and not any(_numbers(dtype, bytes(piece))))


def _numbers(dtype: str, content: bytes) -> tuple[float, ...]:
    if dtype == "bfloat16":  # the upper half of a float32
        halves = [content[at : at + 2] for at in range(0, len(content) - 1, 2)]
        content, dtype = b"".join(b"\0\0" + half for half in halves), "float32"
    return _format(dtype, len(content)).unpack_from(content)


@functools.lru_cache(maxsize=512)
def _format(dtype: str, size: int) -> struct.Struct:
    """The format of all whole numbers in so many bytes."""
    form = FORMATS[dtype]
    return struct.Struct(f"<{size // struct.calcsize(form)}{form}")


def conditions(hashes: dict[str, dict[str, str]]) -> dict[str, dict[str, list[str]]]:
    """The names of arrays that are zero, or hold a NaN, by condition and channel."""
    result: dict[str, dict[str, list[str]]] = {}
    for condition, codes in (("zero", zero), ("nan", nan)):
        named = {channel: _names(hashes.get(channel, {}).items(), codes) for channel in CHANNELS}
        result[condition] = {channel: names for channel, names in named.items() if names}
    return {condition: named for condition, named in result.items() if named}


def _names(items: Iterable[tuple[str, str]], codes: set[str]) -> list[str]:
    return sorted(name for name, code in items if code in codes)
