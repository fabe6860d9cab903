"""Refusal of operations without a portable form, in any framework."""

import difflib
import json
import sys
import sysconfig
from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from pathlib import Path
from types import FrameType

from repro.errors import UsageError

PACKAGE = str(Path(__file__).parents[3]) + "/"
LIBRARIES = tuple({sysconfig.get_path(name) + "/" for name in ("stdlib", "platstdlib", "purelib", "platlib")})
INSTALLED = ("/site-packages/", "/dist-packages/")

ONCE = "compute it once, outside of the training, and load its result"
"""The remedy for what a training seldom needs in each step."""


class RefusedError(RuntimeError):
    """An operation has no portable form: its name, the line of the program that called it, and what to do."""


def refused(
    name: str, values: Iterable[str], where: str, why: str, remedy: str, remedies: Mapping[str, str]
) -> RefusedError:
    """The error that says so, in one line.

    `values` are types and shapes of arguments, of which three are shown; `remedies` portable equivalents by how the names
    of operations begin, for where no other is given.
    """
    remedy = remedy or next((text for begin, text in remedies.items() if name.startswith(begin)), "")
    shown = ", ".join(islice(values, 3))
    where = where or "an unknown line"
    allowed = f"run it natively with --allow {name}, or in a script with enable(allow={json.dumps([name])})"
    what = f"{name} of {shown}" if shown else name
    return RefusedError(f"portable numerics: {what} at {where}: {why}; {remedy and f'{remedy}, or '}{allowed}")


def unknown_operation(name: str, framework: str, known: Collection[str]) -> UsageError:
    """The error for an operation to run natively that the framework does not have."""
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else "write it as the error has it that refuses it"
    return UsageError(f"portable: --allow {name}: {framework} has no such operation; {hint}")


def program_line(frame: FrameType | None = None) -> str:
    """File and line of the innermost frame that is the program's own, or else of the nearest library; "" without one."""
    frame = frame or sys._getframe(1)
    nearest = ""
    while frame is not None:
        file = frame.f_code.co_filename
        generated = file.startswith("<") and frame.f_globals.get("__name__") != "__main__"
        if not generated and not file.startswith(PACKAGE):
            nearest = nearest or f"{file}:{frame.f_lineno}"
            if not is_library(file):
                return f"{file}:{frame.f_lineno}"
        frame = frame.f_back
    return nearest


def is_library(file: str) -> bool:
    """True if a file belongs to Python, to an installed package or to this one."""
    return file.startswith((PACKAGE, *LIBRARIES)) or any(part in file for part in INSTALLED)
