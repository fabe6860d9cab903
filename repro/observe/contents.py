"""Zeros, NaN and rounded numbers in what is hashed.

All of an array is read only where its beginning is zero or rounded. NaN is looked for at both ends: a loss that is NaN
makes all of a gradient NaN. Rounded are float32 numbers that have no more bits than those of a shorter type, as after a
cast to that and back.
"""

import functools
import struct
from collections.abc import Iterable
from typing import Any

ENDS, PIECE = 64, 1 << 16  # bytes that are examined
MOST = 100_000  # hashes that are remembered
FORMATS = {"float16": "e", "float32": "f", "float64": "d"}
LOWEST = {
    "bfloat16": bytes(1),
    "float16": bytes(range(0, 256, 32)),
}  # values of a float32's second byte; its first is 0
CHANNELS = ("initial weights", "gradients", "weights")
ROUNDED = (
    "initial weights",
    "changed weights",
    "weights",
    "copies",
    "optimizer",
)  # the channels whose rounded arrays are named

zero: set[str] = set()  # hashes of arrays that contain only zeros
nan: set[str] = set()  # hashes of arrays that contain a NaN
rounded: dict[str, set[str]] = {name: set() for name in LOWEST}  # hashes of arrays of rounded numbers, by their type


def look(code: str, dtype: str, content: Any) -> None:
    """Remembers the hash of an array whose bytes are zeros or rounded numbers alone, or hold a NaN."""
    if dtype not in FORMATS and dtype != "bfloat16":
        return
    for codes in (zero, nan, *rounded.values()):
        if len(codes) > MOST:
            codes.clear()
    size = len(content)
    head = _numbers(dtype, bytes(content[:ENDS]))
    if _holds_nan(head) or (size > ENDS and _holds_nan(_numbers(dtype, bytes(content[size - ENDS :])))):
        nan.add(code)
    elif size and not any(head) and all(_is_zero(dtype, content[at : at + PIECE]) for at in range(0, size, PIECE)):
        zero.add(code)
    elif size and dtype == "float32":
        name = next((name for name, lowest in LOWEST.items() if _is_rounded(content, lowest)), None)
        if name is not None:
            rounded[name].add(code)


def _is_rounded(content: Any, lowest: bytes) -> bool:
    """True if the two lowest bytes of all float32 numbers are 0, and one of these."""
    rest = range(ENDS, len(content), PIECE)
    return _are_rounded(bytes(content[:ENDS]), lowest) and all(
        _are_rounded(bytes(content[at : at + PIECE]), lowest) for at in rest
    )


def _are_rounded(numbers: bytes, lowest: bytes) -> bool:
    return not (numbers[::4].strip(b"\0") or numbers[1::4].translate(None, lowest))


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
    kinds = [("zero", zero, CHANNELS), ("nan", nan, CHANNELS), *((*one, ROUNDED) for one in rounded.items())]
    for condition, codes, channels in kinds:
        named = {channel: _names(hashes.get(channel, {}).items(), codes) for channel in channels}
        result[condition] = {channel: names for channel, names in named.items() if names}
    return {condition: named for condition, named in result.items() if named}


def _names(items: Iterable[tuple[str, str]], codes: set[str]) -> list[str]:
    return sorted(name for name, code in items if code in codes)
