"""Refusal of operations without a portable form."""

import sys
import sysconfig
from pathlib import Path
from types import FrameType

PACKAGE = str(Path(__file__).parents[3]) + "/"
LIBRARIES = tuple({sysconfig.get_path(name) + "/" for name in ("stdlib", "platstdlib", "purelib", "platlib")})


class RefusedError(RuntimeError):
    """An operation has no portable form: its name, the line of the program that called it, and what to do."""


def refuse(operation: str, why: str, remedy: str = "") -> RefusedError:
    """The error that says so, in one line."""
    allowed = f"or let it through with --allow {operation.removeprefix('aten::').split('.')[0].strip('_')}"
    remedy = f"{remedy}, {allowed}" if remedy else allowed.removeprefix("or ")
    return RefusedError(f"portable numerics: {operation} at {place()}: {why}; {remedy}")


def place() -> str:
    """File and line of the innermost frame that is the program's own, not a library's."""
    frame: FrameType | None = sys._getframe(1)
    nearest = ""
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith((PACKAGE, "<")):
            nearest = nearest or f"{file}:{frame.f_lineno}"
            if not file.startswith(LIBRARIES):
                return f"{file}:{frame.f_lineno}"
        frame = frame.f_back
    return nearest or "an unknown line"
