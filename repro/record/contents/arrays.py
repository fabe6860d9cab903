"""Files of arrays: NumPy's, safetensors, HDF5, MessagePack of Flax."""

import importlib
import importlib.util
import json
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np

from repro.record.contents.values import CHUNK, UnreadableError, Values, add_plain, chunks, digest_of, joined, rest

LONGEST_HEADER = 100 << 20  # bytes of a safetensors header, as the format limits it
FLAX_ARRAY = 1  # the type of MessagePack's extension by which Flax stores arrays


def add_npy(values: Values, file: BinaryIO, key: str = "array") -> None:
    """Adds the array of an .npy file."""
    try:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(file)
    except (ValueError, EOFError, TypeError) as error:
        raise UnreadableError(f"no array of NumPy: {error}") from None
    if dtype.hasobject:
        values.data(key, digest_of(rest(file)))
        return
    order = [b"F"] if fortran and len(shape) > 1 else []
    digest = digest_of([*order, *chunks(file, prod(shape) * dtype.itemsize)])
    values.array(key, dtype.name, shape, digest)


def add_safetensors(values: Values, file: BinaryIO) -> None:
    """Adds the tensors of a safetensors file, in the order of their names, and its metadata."""
    size = int.from_bytes(file.read(8), "little")
    if size > LONGEST_HEADER:
        raise UnreadableError("no safetensors")
    try:
        header = json.loads(b"".join(chunks(file, size)))
        tensors = {name: entry for name, entry in sorted(header.items()) if name != "__metadata__"}
        for name, entry in tensors.items():
            begin, end = entry["data_offsets"]
            file.seek(8 + size + begin)
            values.array(name, entry["dtype"], entry["shape"], digest_of(chunks(file, end - begin)))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UnreadableError(f"no safetensors: {error}") from None
    add_plain(values, "__metadata__", header.get("__metadata__", {}))


def add_hdf5(values: Values, file: BinaryIO | Path, key: str = "") -> None:
    """Adds the data sets and the attributes of an HDF5 file. UnreadableError where h5py is not installed."""
    if importlib.util.find_spec("h5py") is None:
        raise UnreadableError("h5py is not installed")
    h5py = importlib.import_module("h5py")
    try:
        with h5py.File(file, "r") as opened:
            _add_group(values, h5py, opened, key)
    except (OSError, RuntimeError, KeyError, TypeError, ValueError) as error:
        raise UnreadableError(f"HDF5: {error}") from None


def _add_group(values: Values, h5py: Any, opened: Any, key: str) -> None:
    """Adds all below a file; links are not followed twice."""

    def visit(name: str, item: Any) -> None:
        own = joined(key, name.replace("/", "."))
        _add_attributes(values, item, own)
        if not isinstance(item, h5py.Dataset):
            return
        if item.dtype.hasobject:
            values.data(own, digest_of([repr(item[()]).encode()]))
        else:
            values.array(own, item.dtype.name, item.shape, digest_of(_of_data_set(item)))

    _add_attributes(values, opened, key)
    opened.visititems(visit)


def _of_data_set(item: Any) -> Sequence[bytes] | Any:
    """The bytes of a data set, by rows of the first axis where it is large."""
    if not item.shape or item.nbytes <= CHUNK:
        return [np.ascontiguousarray(item[()]).tobytes()]
    rows = max(1, CHUNK * item.shape[0] // item.nbytes)
    return (np.ascontiguousarray(item[n : n + rows]).tobytes() for n in range(0, item.shape[0], rows))


def _add_attributes(values: Values, item: Any, key: str) -> None:
    for name, value in sorted(item.attrs.items()):
        plain = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
        add_plain(values, joined(key, f"@{name}"), plain)


def add_msgpack(values: Values, data: bytes) -> None:
    """Adds the values of a MessagePack file, with arrays as Flax writes them."""
    try:
        content = msgspec.msgpack.decode(data)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise UnreadableError(f"no MessagePack: {error}") from None
    _add_msgpack(values, "", content, 0)


def _add_msgpack(values: Values, key: str, value: Any, depth: int) -> None:
    if depth > 60:
        raise UnreadableError("too many levels")
    if isinstance(value, dict):
        for name, inner in value.items():
            _add_msgpack(values, joined(key, name), inner, depth + 1)
    elif isinstance(value, msgspec.msgpack.Ext):
        try:
            shape, dtype, data = msgspec.msgpack.decode(value.data)
            values.array(key, str(dtype), shape, digest_of([data]))
        except (msgspec.DecodeError, ValueError, TypeError):
            values.data(key, digest_of([bytes(value.data)]))
    else:
        add_plain(values, key, value)
