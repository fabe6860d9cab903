"""Checkpoints that a command wrote: copies of the files, and the step after which each was there.

The observer made the copies, see repro/observe/checkpoints.py. record.json has their hashes and says which step they are of;
the copies lie in checkpoints/ of the record, under the names that it gives.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from repro.files import matching, read_lines
from repro.record import outputs
from repro.record.lines import Process
from repro.structs import Flaw, Hash, Struct, converted

CHECKPOINTS = "checkpoints"
"""The folder, in that of a record."""
LAST = 2**53


class CheckpointFile(Struct):
    """A file of a checkpoint."""

    sha256: Hash
    copy: Annotated[str, Meta(pattern=r"\A[0-9]+-[0-9]+\Z")]
    """The name of its copy."""


class CheckpointChange(Struct):
    """Files that were written after a step, by name; None for one that was removed."""

    step: Annotated[int, Meta(ge=0, le=LAST)]
    files: dict[str, CheckpointFile | None]


class Seen(Struct):
    """A line of the observer."""

    step: Annotated[int, Meta(ge=0, le=LAST)]
    files: dict[str, str | None]


@dataclass(frozen=True)
class Checkpoint:
    """The files that lay there after a step, with those of earlier steps that were still there."""

    step: int
    files: dict[str, CheckpointFile]
    written: frozenset[str]
    """The names of those that were new then."""


def gathered(folder: Path, processes: Sequence[Process], named: Callable[[Path], str]) -> list[CheckpointChange]:
    """The changes that the observer saw, in a record's folder, with the names of files. OSError where a copy cannot be read."""
    changes = []
    for process in processes:
        if process.rank in (None, 0):
            for line in _lines(folder / CHECKPOINTS / f"{process.about.pid}.jsonl"):
                files = {named(Path(path)): _hashed(folder, copy) for path, copy in line.files.items()}
                changes.append(CheckpointChange(step=line.step, files=files))
    return changes


def _lines(file: Path) -> list[Seen]:
    lines = []
    for path in matching(file.parent, file.name):
        for text in read_lines(path):
            try:
                lines.append(converted(json.loads(text), Seen))
            except (ValueError, Flaw):  # a last one that was being written
                break
    return lines


def _hashed(folder: Path, copy: str | None) -> CheckpointFile | None:
    if copy is None:
        return None
    return CheckpointFile(sha256=outputs.hashes({copy: folder / CHECKPOINTS / copy})[copy], copy=copy)


def checkpoints(changes: Sequence[CheckpointChange]) -> list[Checkpoint]:
    """The checkpoints in the order of their steps, without those of which every file was removed."""
    result: dict[int, Checkpoint] = {}
    files: dict[str, CheckpointFile] = {}
    for change in changes:
        files = {name: file for name, file in (files | change.files).items() if file is not None}
        written = frozenset(name for name, file in change.files.items() if file is not None)
        if written:
            result[change.step] = Checkpoint(change.step, files, written)
    return [result[step] for step in sorted(result)]
