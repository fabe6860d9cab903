"""Files that a command which is stopped may resume from.

It is stopped once such a file is whole, and a step was taken since: a checkpoint may first have another name, and be
written beside the training.
"""

import re
import subprocess
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from repro.record import outputs
from repro.record.new_lines import NewLines

PAUSE = 0.002  # seconds between two looks
LOOKS = 3  # at files of which none stays as it is, until the command is stopped all the same
LACKING = re.compile(r"FileNotFound|No such file|not found|does not exist|doesn't exist|no checkpoint", re.IGNORECASE)
"""The message of a command that misses a file, in the words of several libraries."""

Files = dict[str, outputs.State]


@dataclass
class Checkpoints:
    """The files that one process writes."""

    files: Callable[[], Files]
    """A function that returns the states of the files that the command may write."""
    before: Files
    """The states before the process started."""
    ignored: Collection[str] = ()
    """Names of files that it could not resume from."""

    def written(self) -> Files:
        """The files that were written since."""
        now = self.files()
        return {name: now[name] for name in outputs.written(self.before, now) if name not in self.ignored}

    def begin(self, lines: NewLines) -> int:
        """Ignores what is written before the first step; returns the highest step that was taken until now."""
        now, step = self.files(), lines.highest_step()
        self.before = self.before if step else now
        return step


def are_whole(earlier: Files, now: Files) -> bool:
    """True if one of the files is finished: unchanged for a step, or renamed or replaced since."""
    inodes = {inode for *_, inode in earlier.values()}
    return any(
        state == earlier[name] or state[-1] != earlier[name][-1] if name in earlier else state[-1] in inodes
        for name, state in now.items()
    )


def is_due(process: subprocess.Popen[bytes], folder: Path, step: int, checkpoints: Checkpoints) -> bool:
    """True once it took a step after a finished checkpoint, written at a step or later; waits for it, or for the end."""
    lines, begun, taken, looks = NewLines(folder), False, 0, 0
    earlier: Files = {}
    while process.poll() is None:
        last, taken = taken, lines.highest_step()
        if lines.places and not begun:
            begun, taken = True, taken or checkpoints.begin(lines)
        if taken == last or taken < step:
            time.sleep(PAUSE)
            continue
        now = checkpoints.written()
        if earlier and (looks == LOOKS or are_whole(earlier, now)):
            return True
        earlier, looks = now, looks + bool(now)
        taken = lines.highest_step()  # what is written meanwhile may be of a step that was taken before
    return False
