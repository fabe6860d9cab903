"""Waiting for events: a test waits for what happens, never for a time in which it should."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from support.runs import HANG

T = TypeVar("T")


def until(event: Callable[[], T], process: subprocess.Popen | None = None) -> T:
    """The first result of `event` that is true. AssertionError where a process ends before it, or where all hangs."""
    begun = time.monotonic()
    while not (result := event()):
        assert process is None or process.poll() is None, f"ended with {process.returncode} before what was waited for"
        assert time.monotonic() - begun < HANG, f"waited {HANG} s"
        time.sleep(0.005)
    return result


def whole_line(path: Path) -> str:
    """The text of a file that another process writes a line to; empty until it has."""
    text = path.read_text() if path.exists() else ""
    return text if text.endswith("\n") else ""


def is_gone(process: int) -> bool:
    """True if a process has ended, even if nobody has asked for its exit code yet."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state in "ZX"
