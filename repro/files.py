"""Files written whole, and locked folders.

A file is whole or not there, whenever a crash comes; one process at a time writes to a locked folder.
"""

import contextlib
import errno
import fcntl
import json
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from repro.errors import ReproError

NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)  # a file system that has none
SPACE = 1 << 16  # bytes; a disk with less is full


def write_atomically(path: Path, content: bytes) -> None:
    """Writes beside the path, flushes to disk, renames: a file of the same name is replaced. OSError as from open()."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with naming(path):
        try:
            with open(beside, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                beside.unlink(missing_ok=True)
            raise
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Meanwhile an OSError that does not say of which file it is, as of a write, is of this one."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def current_folder() -> Path:
    """The one that this process was started in. ReproError where it is gone."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise ReproError(
            "the current folder is gone: something removed it, as a command may; start from another one"
        ) from None


def check_space(folder: Path) -> None:
    """OSError where nothing can be written into a folder: its disk is full, read-only or broken."""
    with naming(folder), tempfile.TemporaryFile(dir=folder) as file:
        file.write(b"\0" * SPACE)


def write_json(path: Path, content: Any, indent: int = 2) -> None:
    """The same for JSON."""
    write_atomically(path, json.dumps(content, indent=indent).encode() + b"\n")


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Has a folder for this process alone, until it ends, however that is. ReproError where another one has it.

    A lock of POSIX', because NFS knows it, and because no child that was forked keeps it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / ".lock"
    with open(path, "a+") as file:
        with naming(path):
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (BlockingIOError, PermissionError):
                file.seek(0)
                raise ReproError(
                    f"{folder}: another run ({file.read().strip()}) writes its checkpoints there; wait for it, or take "
                    "another workspace or output.model_path"
                ) from None
            except OSError as error:
                if error.errno not in NO_LOCKS:
                    raise
            file.truncate(0)
            file.write(f"process {os.getpid()} on {socket.gethostname()}")
            file.flush()
        yield
