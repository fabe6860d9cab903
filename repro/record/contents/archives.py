"""Zip archives: checkpoints of PyTorch, .npz, .keras; of others each member by its name. Times of members are left out."""

import io
import zipfile
from pathlib import PurePosixPath
from typing import BinaryIO, cast

from repro.record.contents import arrays, tables
from repro.record.contents.objects import add_pickle
from repro.record.contents.values import UnreadableError, Values, digest_of, rest

PICKLE, STORAGES = "data.pkl", "data"
OF_THE_FORMAT = {"version", "byteorder", ".format_version", ".storage_alignment", ".data/serialization_id"}
"""Members of a checkpoint of PyTorch that hold nothing of the program."""
MOST_MEMBERS = 20_000
LARGEST_MEMBER = 1 << 30  # bytes that are held in memory
LARGEST_RATIO = 2000  # of a member's size to its compressed one; more is made to fill memory


def add_zip(values: Values, file: BinaryIO) -> None:
    """Adds what the members of an archive hold. UnreadableError where it is damaged."""
    try:
        with zipfile.ZipFile(file) as archive:
            members = {one.filename: one for one in archive.infolist() if not one.is_dir()}
            if len(members) > MOST_MEMBERS:
                raise UnreadableError("too many members")
            _add_members(values, archive, members)
    except (zipfile.BadZipFile, NotImplementedError, EOFError, RuntimeError, OSError, ValueError) as error:
        raise UnreadableError(f"no zip archive: {error}") from None


def _add_members(values: Values, archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo]) -> None:
    pickled = next((name for name in members if PurePosixPath(name).name == PICKLE), None)
    root = f"{PurePosixPath(pickled).parent}/" if pickled and "/" in pickled else ""
    if pickled:

        def storage(name: str) -> BinaryIO:
            return cast(BinaryIO, archive.open(f"{root}{STORAGES}/{name}"))

        with archive.open(pickled) as file:
            try:
                add_pickle(values, cast(BinaryIO, file), storage)
            except KeyError as error:
                raise UnreadableError(f"a storage is missing: {error}") from None
    for name, info in sorted(members.items()):
        own = name.removeprefix(root)
        covered = pickled and (name == pickled or own in OF_THE_FORMAT or own.startswith(f"{STORAGES}/"))
        if not covered:
            _add_member(values, archive, info, own)


def _add_member(values: Values, archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> None:
    suffix = PurePosixPath(name).suffix
    small = info.file_size <= min(LARGEST_MEMBER, LARGEST_RATIO * max(info.compress_size, 1))
    with archive.open(info) as file:
        if suffix == ".npy":
            arrays.add_npy(values, cast(BinaryIO, file), name.removesuffix(suffix))
        elif suffix == ".json" and small:
            tables.add_json(values, file.read(), name.removesuffix(suffix))
        elif suffix in (".h5", ".hdf5") and small:
            _add_hdf5(values, file.read(), name)
        else:
            values.data(name, digest_of(rest(cast(BinaryIO, file))))


def _add_hdf5(values: Values, data: bytes, name: str) -> None:
    """Adds an HDF5 file within an archive: its bytes where it cannot be read."""
    own = Values()
    try:
        arrays.add_hdf5(own, io.BytesIO(data), name.rpartition(".")[0])
    except UnreadableError:
        values.data(name, digest_of([data]))
    else:
        values.keys |= own.keys
