"""Files read within limits and written whole; locked folders.

What is read may come from anybody: a pipe, a device, or a file without end is refused. A file that is written is whole or
not there, whenever a crash comes; one process at a time writes to a locked folder.
"""

import contextlib
import errno
import fcntl
import fnmatch
import json
import os
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from repro.errors import ReproError

MOST = 64 << 20  # the most bytes of a file that is read at once, or of a line
PART = 1 << 20  # bytes that are read at a time
MOST_YAML, MOST_VALUES = 1 << 18, 100_000
MOST_LINES = 16 << 30  # the most bytes of a file that is read line by line
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)  # a file system that has none
BESIDE = ".part"  # suffix of a file that is being written
SPACE = 1 << 16  # bytes; a disk with less free space is full


def check_regular(path: Path, most: int = MOST) -> None:
    """Raises OSError if it is no file with content of its own, as a pipe that would block, or if it is too large."""
    status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder, not a file", str(path))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is a pipe, a socket or a device, not a file", str(path))
    if status.st_size > most:
        raise _too_large(path, "it", most)


def _too_large(path: Path, what: str, most: int) -> OSError:
    return OSError(errno.EFBIG, f"{what} is larger than {most} bytes, the most that is read", str(path))


def read(path: Path, most: int = MOST) -> bytes:
    """The content of a file. OSError as from open(), and from check_regular()."""
    check_regular(path, most)
    parts, size = [], 0
    with naming(path), open(path, "rb") as file:
        while part := file.read(PART):  # whatever its reported size: it may grow
            parts.append(part)
            size += len(part)
            if size > most:
                raise _too_large(path, "it", most)
    return b"".join(parts)


def read_lines(path: Path, most: int = MOST_LINES, longest: int = MOST) -> Iterator[bytes]:
    """The lines of a file, each with its end. OSError as from read(), for a line that is too long as well."""
    check_regular(path, most)
    with naming(path), open(path, "rb") as file:
        number = 0
        while line := file.readline(longest + 1):
            number += 1
            if len(line) > longest:
                raise _too_large(path, f"line {number}", longest)
            yield line


def read_json(path: Path, most: int = MOST) -> Any:
    """The content of a JSON file. OSError as from read(); ValueError where it is not JSON."""
    return parsed(read(path, most))


def parsed(text: bytes) -> Any:
    """Parses JSON. ValueError if the text is not JSON, or is nested too deep."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def read_yaml(path: Path, most: int = MOST_YAML) -> Any:
    """The content of a YAML file. OSError as from read(); ValueError, in one line, where it is none."""
    import yaml  # here: it comes with the extra [trainers]

    try:
        text = read(path, most).decode()
    except UnicodeDecodeError:
        raise ValueError("it is not text") from None
    try:
        content = yaml.safe_load(text)
    except Exception as error:  # of any type: that of a date, a number or a tag which is none
        raise ValueError(" ".join(str(error).split())[:200]) from None
    _check_aliases(content)
    return content


def _check_aliases(content: Any) -> None:
    """Raises ValueError if few lines stand for very many values, or a value holds itself."""
    left, count = [content], 0
    while left:
        value = left.pop()
        inner = [*value.values()] if isinstance(value, dict) else value if isinstance(value, (list, set)) else ()
        count += len(inner)
        if count > MOST_VALUES:
            raise ValueError(f"with its aliases it holds more than {MOST_VALUES} values")
        left.extend(inner)


def write_atomically(path: Path, content: bytes) -> None:
    """Writes beside the path, flushes to disk, renames: a file of the same name is replaced. OSError as from open()."""
    beside = path.with_name(f".{path.name}.{os.getpid()}{BESIDE}")
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
    """Names the file in an OSError that lacks it, as one of a write does."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def matching(folder: Path, pattern: str) -> list[Path]:
    """Paths in a folder whose names match a pattern, sorted; empty if there is no such folder.

    OSError if it cannot be listed: Path.glob would find nothing, as if the files were lost.
    """
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    return [folder / name for name in sorted(fnmatch.filter(names, pattern))]


def current_folder() -> Path:
    """The one that this process was started in. ReproError where it is gone."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise ReproError(
            "the current folder is gone: something removed it, as a command may; start from another one"
        ) from None


def check_space(folder: Path) -> None:
    """Raises OSError if nothing can be written into a folder: its disk is full, read-only or broken."""
    with naming(folder), tempfile.TemporaryFile(dir=folder) as file:
        file.write(b"\0" * SPACE)


def write_json(path: Path, content: Any, indent: int = 2) -> None:
    """Replaces a file by JSON, atomically."""
    write_atomically(path, json.dumps(content, indent=indent).encode() + b"\n")


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Locks a folder for this process alone, until it ends, however that is. ReproError if another one has the lock.

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
