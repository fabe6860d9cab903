"""Waits between two steps, or between two backward passes.

`repro verify` asks for them where it stops a run: a file in FOLDER/steps says where the process stands, and it goes on
once that is gone. A signal's handler may raise meanwhile, which is the program's own affair.
"""

import os
import time
from typing import Optional

from . import recorder

NAME = "held"  # prefix of the file: held.PID.STEP.PASSES
LIMIT = 60.0  # seconds until it continues though nobody has removed the file
PAUSE = 0.001

first_step: Optional[int] = None  # the number of steps after which it waits; None: never
last = -1  # the step after which it waited last


def start(text: str) -> None:
    """Reads the number of steps after which to wait, as REPRO_OBSERVE_HOLD has it."""
    global first_step
    first_step = int(text) if text.isdigit() else None
    recorder.wait = before_line


def before_line(step: int) -> None:
    """Waits before the line of a step is written, unless it did so before that step's backward pass.

    What the program writes after a step is there by then, unless another thread writes it.
    """
    if step - 1 == last:
        return
    try:
        _wait(step - 1, 0)
    except BaseException as error:
        recorder.raised = error
        raise


def wait(passes: int) -> None:
    """Waits before a backward pass; `passes` were made since the last step."""
    if recorder.active is not None:
        _wait(recorder.active.steps, passes)


def _wait(steps: int, passes: int) -> None:
    global last
    active = recorder.active
    if active is None or first_step is None or steps < first_step:
        return
    last = steps
    path = os.path.join(active.folder, "steps", f"{NAME}.{os.getpid()}.{steps}.{passes}")
    try:
        open(path, "x").close()
        end = time.monotonic() + LIMIT
        while os.path.exists(path):
            if time.monotonic() > end:
                os.unlink(path)
            time.sleep(PAUSE)
    except OSError:
        pass
