"""Files that are whole or not there: a crash at any moment leaves the old content or the new, never a part."""

import os
from pathlib import Path


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
