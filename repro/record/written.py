"""Files that a run wrote into its own folder, `{run}`, and the values of output files by their keys.

record.json holds the SHA-256 of each file, contents.json beside it the values, so that a record is enough to name the first
one that differs.
"""

import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from msgspec import UNSET

from repro.files import naming, read, write_json
from repro.record import contents, outputs
from repro.record.contents.values import digest_of
from repro.record.lines import Process
from repro.structs import Flaw, Hash, Struct, converted
from repro.text import RUN, counted, escaped

FILE = "contents.json"
MOST_FILES = 1000
MOST_BYTES = 32 << 30  # of all files of a run
MOST_KEYS = 100_000  # values of all files of a run


class WrittenFile(Struct):
    """A file in the folder of a run."""

    sha256: Hash
    final: bool
    """True if it was written after the last step, so that it holds the end of the run."""


class FileContents(Struct):
    """The values of a file."""

    sha256: Hash
    keys: dict[str, str]
    """A value by its key, as `kind text`; of an array its type, its shape and the beginning of a hash."""


def in_folder(run: Path) -> tuple[dict[str, Path], str | None]:
    """The files below the folder of a run by name, and a note where not all of them are compared."""
    states = outputs.folder(run)
    paths: dict[str, Path] = {}
    size = 0
    for path in sorted(states):
        size += states[path][1]
        if len(paths) >= MOST_FILES or size > MOST_BYTES:
            left = f"{counted(len(states) - len(paths), 'file')} of {len(states)} in {RUN} are not compared"
            return paths, f"{left}: more than {MOST_FILES} files, or {MOST_BYTES >> 30} GiB; name some with --output"
        paths[f"{RUN}/{escaped(os.path.relpath(path, run))}"] = Path(path)
    return paths, None


def hashed(paths: Mapping[str, Path], processes: Sequence[Process]) -> dict[str, WrittenFile]:
    """The SHA-256 of files, but for those that are gone meanwhile."""
    last = max((line.time for one in processes for line in one.lines.values() if line.time is not UNSET), default=None)
    files = {}
    for name, path in paths.items():
        with contextlib.suppress(FileNotFoundError, PermissionError):
            time = path.stat().st_mtime
            files[name] = WrittenFile(sha256=outputs.hashes({name: path})[name], final=last is None or time >= last)
    return files


def write(folder: Path, paths: Mapping[str, Path], hashes: Mapping[str, str]) -> str | None:
    """Writes the values of files into the folder of a record; the SHA-256 of what was written, None where there is none."""
    files, keys = {}, 0
    for name, path in paths.items():
        known = contents.read(path) if name in hashes else None
        if known is None or keys + len(known) > MOST_KEYS:
            continue
        keys += len(known)
        files[name] = {"sha256": hashes[name], "keys": known}
    if not files:
        return None
    write_json(folder / FILE, {"schema": 1, "files": files})
    with naming(folder / FILE), open(folder / FILE, "rb") as file:
        return digest_of(iter(lambda: file.read(1 << 20), b""))


@lru_cache(maxsize=8)
def read_contents(folder: Path, digest: str) -> dict[str, FileContents]:
    """The values of files, as far as they can be believed: none where they were changed since, or removed."""
    try:
        data = read(folder / FILE)
        if digest_of([data]) != digest:
            return {}
        return converted(json.loads(data)["files"], dict[str, FileContents])
    except (OSError, ValueError, KeyError, TypeError, Flaw, RecursionError):
        return {}
