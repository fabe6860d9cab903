"""The values of a file that a training wrote, by their keys, so that the first one that differs has a name.

No framework is imported, and no pickle is loaded. A file is only read; what is not understood is compared by its bytes.

values     the values of one file, and the limits of all readers
pickles    pickles as descriptions: nothing that they name is called
objects    what such a description holds: tensors, arrays, numbers
archives   zip: checkpoints of PyTorch, .npz, .keras
arrays     .npy, safetensors, HDF5, MessagePack
tables     JSON, JSON lines, CSV
"""

from collections.abc import Callable
from pathlib import Path, PurePath
from typing import BinaryIO

from repro.record.contents import archives, arrays, objects, tables
from repro.record.contents.values import UnreadableError, Values

__all__ = ["UnreadableError", "Values", "read"]

LIMITS = ("too ", "h5py ")  # an error that begins so says nothing of the file
LARGEST_TEXT = 64 << 20  # bytes of a file that is read at once

Reader = Callable[[Values, BinaryIO], None]


def _at_once(reader: Callable[[Values, bytes], None]) -> Reader:
    """A reader of bytes as one of files."""

    def take(values: Values, file: BinaryIO) -> None:
        data = file.read(LARGEST_TEXT + 1)
        if len(data) > LARGEST_TEXT:
            raise UnreadableError("too large")
        reader(values, data)

    return take


BEGINNINGS: tuple[tuple[bytes, Reader], ...] = (
    (b"\x93NUMPY", arrays.add_npy),
    (b"PK\x03\x04", archives.add_zip),
    (b"\x89HDF\r\n\x1a\n", arrays.add_hdf5),
    *((b"\x80" + bytes([protocol]), objects.add_pickle) for protocol in range(2, 6)),
)
"""Readers by the first bytes of a file."""
SUFFIXES: dict[str, Reader] = {
    ".safetensors": arrays.add_safetensors,
    ".msgpack": _at_once(arrays.add_msgpack),
    ".json": _at_once(tables.add_json),
    ".jsonl": _at_once(tables.add_json_lines),
    ".ndjson": _at_once(tables.add_json_lines),
    ".csv": _at_once(tables.add_csv),
    ".tsv": _at_once(tables.add_csv),
}
"""Readers by the end of a name, where the first bytes say nothing."""


def read(path: Path, name: str | None = None) -> dict[str, str] | None:
    """The values of a file by their keys, as `kind text`; None where its format is unknown, or it cannot be read.

    `name`: its own, where the path is that of a copy.
    """
    try:
        return _values(path, PurePath(name or path))
    except (UnreadableError, OSError, MemoryError, RecursionError):
        return None


def is_damaged(path: Path) -> bool:
    """True if a file is empty, or was cut off, as one that was being written: of the formats that are read."""
    try:
        if path.stat().st_size == 0:
            return True
        _values(path, path)
        return False
    except UnreadableError as error:
        return not str(error).startswith(LIMITS)
    except (OSError, MemoryError, RecursionError):
        return False


def _values(path: Path, name: PurePath) -> dict[str, str] | None:
    result = Values()
    with open(path, "rb") as file:
        reader = _reader(name, file.read(8))
        file.seek(0)
        if reader is None:
            return None
        reader(result, file)
    return result.keys


def _reader(path: PurePath, beginning: bytes) -> Reader | None:
    unnamed = SUFFIXES[".json"] if beginning.startswith(b"{") else None
    named = SUFFIXES.get(path.suffix, unnamed)
    return next((reader for begins, reader in BEGINNINGS if beginning.startswith(begins)), named)
