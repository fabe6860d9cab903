"""Values of a file by their keys: arrays as hashes, numbers and short texts as they are."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import BinaryIO, Literal

Kind = Literal["array", "number", "text", "bytes"]

MOST_KEYS = 20_000  # values of one file
LONGEST_KEY, LONGEST_TEXT = 200, 60  # characters
DEEPEST = 60  # levels
CHUNK = 1 << 20  # bytes that are read at once


class UnreadableError(Exception):
    """A file is damaged, too large, or of another format than its name says: its bytes alone can be compared."""


@dataclass
class Values:
    """The values of one file, as `kind text`; of arrays the type, the shape and a hash."""

    keys: dict[str, str] = field(default_factory=dict)

    def array(self, key: str, dtype: str, shape: Iterable[int], digest: str) -> None:
        self._add(key, "array", f"{dtype}[{','.join(map(str, shape))}] {digest[:16]}")

    def number(self, key: str, value: object) -> None:
        self._add(key, "number", str(value)[:LONGEST_TEXT])

    def text(self, key: str, value: str) -> None:
        shown = json.dumps(value[:LONGEST_TEXT])
        more = f" {digest_of([value.encode(errors='surrogatepass')])[:16]}" if len(value) > LONGEST_TEXT else ""
        self._add(key, "text", shown + more)

    def data(self, key: str, digest: str) -> None:
        """Adds bytes of unknown meaning."""
        self._add(key, "bytes", digest[:16])

    def _add(self, key: str, kind: Kind, text: str) -> None:
        if len(self.keys) >= MOST_KEYS:
            raise UnreadableError(f"more than {MOST_KEYS} values")
        key = key or "0"  # of a file that is one value
        name = key if len(key) <= LONGEST_KEY else f"{key[:LONGEST_KEY]}… {digest_of([key.encode()])[:8]}"
        while name in self.keys:
            name += "'"
        self.keys[name] = f"{kind} {text}"


def add_plain(values: Values, key: str, value: object, depth: int = 0) -> None:
    """Adds what JSON can hold: objects and lists by their parts."""
    if depth > DEEPEST:
        raise UnreadableError("too many levels")
    if isinstance(value, dict):
        for name, inner in value.items():
            add_plain(values, joined(key, name), inner, depth + 1)
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            add_plain(values, joined(key, number), inner, depth + 1)
    elif isinstance(value, str):
        values.text(key, value)
    elif isinstance(value, bytes):
        values.data(key, digest_of([value]))
    else:
        values.number(key, value)


def joined(key: str, name: object) -> str:
    """The key of a part."""
    return f"{key}.{name}" if key else str(name)


def digest_of(chunks: Iterable[bytes]) -> str:
    """The SHA-256 of bytes in parts."""
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()


def chunks(file: BinaryIO, size: int) -> Iterable[bytes]:
    """Yields so many bytes of a file in parts. UnreadableError where it ends before."""
    while size > 0:
        chunk = file.read(min(size, CHUNK))
        if not chunk:
            raise UnreadableError("it was cut off")
        size -= len(chunk)
        yield chunk


def rest(file: BinaryIO) -> Iterable[bytes]:
    """Yields all that is left of a file."""
    return iter(lambda: file.read(CHUNK), b"")
