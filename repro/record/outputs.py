"""Output files of a command.

Which of them it wrote, and their hashes.
"""

import contextlib
import glob
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence, Set
from pathlib import Path
from typing import NoReturn

from repro.files import matching, naming
from repro.observe.files import NAME
from repro.record.lines import STEPS
from repro.text import RUN, escaped

UNSEEN = {".git", ".venv", "__pycache__", "node_modules", ".cache", "repro-records"}
MANY = 50_000  # the most files that are examined

State = tuple[int, int, int]
"""A file's time of change (ns), size and inode. A file that was written has another state."""


def in_run(text: str, run: Path | None) -> str:
    """The text with the run's folder in the place of `{run}`."""
    return text if run is None else text.replace(RUN, str(run))


def matched(patterns: Sequence[str], run: Path | None = None) -> dict[str, Path]:
    """The files that the patterns name, by name: of a folder that one names, all that is in it."""
    paths: dict[str, Path] = {}
    for pattern in patterns:
        own = pattern if run is None else pattern.replace(RUN, glob.escape(str(run)))
        # A glob says that nothing is there where it may not look; of a name as it stands, the system says why.
        names = glob.glob(own, recursive=True, include_hidden=True) if glob.has_magic(own) else [own]
        for path in (path for name in names for path in _inside(Path(name))):
            if path.is_file():
                paths[named_file(path, run)] = path
    return dict(sorted(paths.items()))


def _inside(path: Path) -> list[Path]:
    """All files in a folder and below it; a path that is no folder, itself. OSError where a folder cannot be listed."""
    if not path.is_dir():
        return [path]
    return [Path(folder, name) for folder, _, names in os.walk(path, onerror=_fail) for name in names]


def _fail(error: OSError) -> NoReturn:
    raise error


def named_file(path: Path, run: Path | None) -> str:
    """The name of a file: below `{run}`, or as the path has it."""
    if run is not None and path.is_relative_to(run):
        return f"{RUN}/{escaped(str(path.relative_to(run)))}"
    return escaped(str(path))


def states(paths: dict[str, Path]) -> dict[str, State]:
    """The states of files, by name."""
    states = {}
    for name, path in paths.items():
        with contextlib.suppress(FileNotFoundError):  # gone meanwhile
            states[name] = _state(path)
    return states


def _state(path: Path | os.DirEntry[str]) -> State:
    said = path.stat(follow_symlinks=False) if isinstance(path, os.DirEntry) else path.stat()
    return said.st_mtime_ns, said.st_size, said.st_ino


def folder(*paths: Path, without: Path | None = None) -> dict[str, State]:
    """States of all files below some folders, by path; `without`, and what git and environments keep, are left out."""
    states: dict[str, State] = {}
    for path in paths:
        for entry in _entries(path, str(without)):
            with contextlib.suppress(OSError):
                states[entry.path] = _state(entry)
            if len(states) >= MANY:
                return states
    return states


def folders(*paths: Path, without: Path | None = None) -> set[str]:
    """All folders with the files that folder() has, and these paths themselves."""
    result = {str(path) for path in paths}
    for path in paths:
        for entry in _entries(path, str(without), folders=True):
            result.add(entry.path)
            if len(result) >= MANY:
                return result
    return result


def _entries(path: Path, without: str, folders: bool = False) -> Iterator[os.DirEntry[str]]:
    with contextlib.suppress(OSError), os.scandir(path) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in UNSEEN and entry.path != without:
                    yield from [entry] if folders else []
                    yield from _entries(Path(entry.path), without, folders)
            elif not folders and entry.is_file(follow_symlinks=False):
                yield entry


def written(before: dict[str, State], after: dict[str, State]) -> set[str]:
    """Names of files that are new, or were written since."""
    return {name for name, state in after.items() if before.get(name) != state}


def named(folder: Path) -> set[str]:
    """The files that the observed processes of a run say they wrote, in the folder of its record."""
    names: set[str] = set()
    for file in matching(folder / STEPS, f"{NAME}*"):
        for line in file.read_bytes().splitlines(keepends=True):
            with contextlib.suppress(ValueError):  # the last line was being written
                names.add(os.path.realpath(json.loads(line)))
    return names


def own(names: Iterable[str], known: Set[str]) -> set[str]:
    """Files that are known, or lie in a folder that is, such as one that was renamed."""
    return {
        name for name in names if any(os.path.realpath(path) in known for path in (Path(name), *Path(name).parents))
    }


def hashes(paths: dict[str, Path]) -> dict[str, str]:
    """The SHA-256 of each file's content. OSError where one cannot be read."""
    hashes = {}
    for name, path in paths.items():
        with naming(path), open(path, "rb") as file:
            hashes[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return hashes
