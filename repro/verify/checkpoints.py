"""Files that a command which is stopped may resume from.

It is stopped once such a file is whole, and a step was taken since: a checkpoint may first have another name, and be
written beside the training.
"""

import math
import re
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from repro.files import matching
from repro.observe.windows import NAME as HELD
from repro.record import outputs
from repro.record.new_lines import NewLines
from repro.record.process import send

PAUSE = 0.002  # seconds between two looks
LOOKS = 3  # at files of which none stays as it is, until the command is stopped all the same
TRIES = 3  # to freeze it while it writes nothing; a program may write a line after each step
OF_PROCESS = re.compile(r"(\d+)(-\d+)?\.jsonl$")  # its number, in the name of its lines
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
    """True once it took a step after a finished checkpoint, written at a step or later; waits for it, or for the end.

    Then it is frozen where it writes none. It may wait before each backward pass until this side has looked.
    """
    lines, begun, taken, looks, tries = NewLines(folder), False, 0, 0, 0
    is_new, waits = False, False
    earlier: Files = {}
    while process.poll() is None:
        held = matching(folder, f"{HELD}.*")
        last, taken = taken, lines.highest_step()
        if lines.places and not begun:
            begun, taken = True, taken or checkpoints.begin(lines)
        is_new, waits = is_new or taken > last, waits or bool(held)
        due = is_new and taken >= step and (bool(held) or not waits)
        if due:
            now = checkpoints.written()
            whole = bool(earlier) and (looks == LOOKS or are_whole(earlier, now))
            if whole and (tries == TRIES or _frozen_between_steps(process, lines, held, checkpoints)):
                _release(held)
                return True
            earlier, looks, tries, is_new = now, looks + bool(now), tries + whole, False
            taken = lines.highest_step()  # what is written meanwhile may be of a step that was taken before
        _release(held)
        if not due:
            time.sleep(PAUSE)
    return False


def _frozen_between_steps(
    process: subprocess.Popen[bytes], lines: NewLines, held: Sequence[Path], checkpoints: Checkpoints
) -> bool:
    """Freezes a command where it writes no checkpoint; False if it does, and goes on.

    Each process that trains waits before a step's first backward pass, or no file is as new as its last step.
    """
    send(process, signal.SIGSTOP)
    waiting = {file.name.split(".")[1] for file in held if file.name.endswith(".0")}
    if {OF_PROCESS.search(file.name)[1] for file in lines.times} <= waiting:  # type: ignore[index]
        return True
    last = min(lines.times.values(), default=math.inf)
    if all(changed / 1e9 < last for changed, *_ in checkpoints.written().values()):
        return True
    send(process, signal.SIGCONT)
    return False


def _release(held: Sequence[Path]) -> None:
    for file in held:
        file.unlink(missing_ok=True)
