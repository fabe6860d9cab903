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
"""What a command says that misses a file, in whatever words its library has."""

Files = dict[str, outputs.State]


@dataclass
class Checkpoints:
    """Those that one process writes."""

    files: Callable[[], Files]
    """How the files are that the command may write."""
    before: Files
    """How they were before it."""
    ignored: Collection[str] = ()
    """Names of files that it could not resume from."""

    def written(self) -> Files:
        """Those that were written since."""
        now = self.files()
        return {name: now[name] for name in outputs.written(self.before, now) if name not in self.ignored}

    def begin(self, lines: NewLines) -> int:
        """What is written before the first step is nothing to resume from; the highest step that was taken until now."""
        now, step = self.files(), lines.highest_step()
        self.before = self.before if step else now
        return step


def are_whole(earlier: Files, now: Files) -> bool:
    """Whether one of the files is finished: it is as it was a step ago, or it has been renamed or replaced since."""
    inodes = {inode for *_, inode in earlier.values()}
    return any(
        state == earlier[name] or state[-1] != earlier[name][-1] if name in earlier else state[-1] in inodes
        for name, state in now.items()
    )


def is_due(process: subprocess.Popen[bytes], folder: Path, step: int, checkpoints: Checkpoints) -> bool:
    """Whether it took a step after a checkpoint that is whole, written at a step or later; waits for that, or for its end."""
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
