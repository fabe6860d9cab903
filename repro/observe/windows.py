"""Waits between two backward passes.

`repro verify` asks for them where it stops a run within an accumulation window: a file in FOLDER/steps says where the
process stands, and it goes on once that is gone. It waits outside of never_raise: a signal's handler may raise.
"""

import os
import time
from typing import Optional

from . import recorder

NAME = "held"  # prefix of the file: held.PID.STEP.PASSES
LIMIT = 60.0  # seconds until it continues though nobody has removed the file
PAUSE = 0.001

first_step: Optional[int] = None  # the number of steps after which it waits; None: never


def start(text: str) -> None:
    """Reads the number of steps after which to wait, as REPRO_OBSERVE_HOLD has it."""
    global first_step
    first_step = int(text) if text.isdigit() else None


def wait(passes: int) -> None:
    """Waits before a backward pass; `passes` were made since the last step."""
    active = recorder.active
    if active is None or first_step is None or active.steps < first_step:
        return
    path = os.path.join(active.folder, "steps", f"{NAME}.{os.getpid()}.{active.steps}.{passes}")
    try:
        open(path, "x").close()
        end = time.monotonic() + LIMIT
        while os.path.exists(path):
            if time.monotonic() > end:
                os.unlink(path)
            time.sleep(PAUSE)
    except OSError:
        pass
