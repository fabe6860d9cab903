"""Copies of the checkpoints that this process writes, with the step after which each was there.

Files that match the patterns are looked at whenever a step is counted: what changed since the last look was written after
the step before, however the program wrote it. The copies lie in FOLDER/checkpoints, and so does PID.jsonl, which gets a line
of JSON for each look that saw a change. A file that another thread is still writing is copied again at the next look.
"""

import glob
import json
import os
import shutil
from typing import Any, Optional

from . import recorder

FOLDER = "checkpoints"

State = tuple[int, int, int]  # time of change (ns), size, inode


class Checkpoints:
    """The files that match, as they were at the last look."""

    def __init__(self, patterns: list[str]):
        self.patterns = [os.path.abspath(pattern) for pattern in patterns]  # the program may change its folder
        self.seen = self.states()
        self.copies = 0
        self.process = os.getpid()

    def states(self) -> dict[str, State]:
        """States of all files that match, or lie in a folder that does, by path."""
        states = {}
        for path in (path for pattern in self.patterns for path in glob.glob(pattern, recursive=True)):
            for file in _files(path):
                state = _state(file)
                if state is not None:
                    states[file] = state
        return states

    def look(self, step: int) -> None:
        """Copies what changed since the last look, which was written after this step. Forked children write none.

        A copy that fails makes no step less observed.
        """
        active = recorder.active
        if active is None or self.process != os.getpid():
            return
        try:
            self.copy_changed(active.folder, step)
        except Exception as error:
            recorder.note(f"checkpoints after step {step} were not copied: {type(error).__name__}: {error}")

    def copy_changed(self, folder: str, step: int) -> None:
        now = self.states()
        changed = {path: self.copy(folder, path) for path in sorted(now) if now[path] != self.seen.get(path)}
        gone = {path: None for path in sorted(self.seen) if path not in now}
        self.seen = now
        if changed or gone:
            with open(os.path.join(folder, FOLDER, f"{self.process}.jsonl"), "ab", buffering=0) as file:
                file.write(json.dumps({"step": step, "files": {**changed, **gone}}).encode() + b"\n")

    def copy(self, folder: str, path: str) -> Optional[str]:
        """Copies a file; the name of the copy, None where it is gone meanwhile."""
        self.copies += 1
        name = f"{self.process}-{self.copies}"
        try:
            shutil.copyfile(path, os.path.join(folder, FOLDER, name))
        except FileNotFoundError:
            return None
        return name


def _state(file: str) -> Optional[State]:
    try:
        said = os.stat(file)
    except OSError:  # gone meanwhile
        return None
    return said.st_mtime_ns, said.st_size, said.st_ino


def _files(path: str) -> list[str]:
    if not os.path.isdir(path):
        return [path]
    return [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names]


def start(text: str) -> None:
    """Begins, with the patterns that REPRO_OBSERVE_CHECKPOINTS has as a list of JSON. Of ranks, the first one looks."""
    patterns: Any = json.loads(text) if text else []
    if patterns and recorder.rank_from_environment() in (None, 0):
        recorder.look = Checkpoints(patterns).look
