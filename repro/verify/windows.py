"""Stops within an accumulation window.

The observer waits before each backward pass until this side has looked at the files: one that is new was written after
the last wait, so it is known between which passes.
"""

import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from repro.files import matching
from repro.observe.windows import NAME
from repro.record import outputs

Files = dict[str, outputs.State]


def passes_at_stop(
    process: subprocess.Popen[bytes], folder: Path, latest: int, before: Files, files: Callable[[], Files]
) -> int | None:
    """The number of backward passes since the last step, where the process is to be stopped; None where it has ended.

    That is between two passes, in the step after the one that followed a file that was written so, or else after step
    `latest`. A step that has one pass is stopped before it.
    """
    last, within = None, None
    for step, passes in _waits(process, folder):
        now = files()
        if last is not None and outputs.written(last, now):
            within = step if passes else None  # the step after which the newest file was written
        followed = within is not None and step > within
        is_due = step > latest or (passes and (followed or step == latest))
        if is_due and outputs.written(before, now):
            return passes
        last = now
    return None


def _waits(process: subprocess.Popen[bytes], folder: Path) -> Iterator[tuple[int, int]]:
    """Steps and passes at which a process waits, until the command ends; it goes on when the next is asked for."""
    while process.poll() is None:
        for file in matching(folder, f"{NAME}.*"):
            *_, step, passes = file.name.split(".")
            yield int(step), int(passes)
            file.unlink(missing_ok=True)
        time.sleep(0.001)
