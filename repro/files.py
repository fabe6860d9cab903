"""Files written whole, and locked folders.

A file is whole or not there, whenever a crash comes; one process at a time writes to a locked folder.
"""

import contextlib
import errno
import fcntl
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from repro.errors import ReproError

NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)  # a file system that has none


def write_atomically(path: Path, content: bytes) -> None:
    """Writes beside the path, flushes to disk, renames: a file of the same name is replaced. OSError as from open()."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(beside, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException as error:
        beside.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)  # a write that fails does not say where
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_json(path: Path, content: Any, indent: int = 2) -> None:
    """The same for JSON."""
    write_atomically(path, json.dumps(content, indent=indent).encode() + b"\n")


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Has a folder for this process alone, until it ends, however that is. ReproError where another one has it.

    A lock of POSIX', because NFS knows it, and because no child that was forked keeps it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "a+") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in NO_LOCKS:
                file.seek(0)
                raise ReproError(
                    f"{folder}: another run ({file.read().strip()}) writes its checkpoints there; wait for it, or take "
                    "another workspace or output.model_path"
                ) from None
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}")
        file.flush()
        yield
