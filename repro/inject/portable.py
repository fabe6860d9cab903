"""Portable numerics in somebody else's process.

Switched on when PyTorch has been imported. A process in which that fails ends: it would train with other numerics, and
nobody would know. What was computed is written to the folder REPRO_PORTABLE, a file for each process.
"""

import atexit
import json
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import NoReturn, Optional

from . import imports, package

OLDEST = (3, 11)
OTHERS = ("jax", "tensorflow")  # frameworks whose numerics stay as they are

LOADED = "loaded"  # an empty file in the folder, which says that a Python process got here
SLOW = "llvmlite is not installed in this environment, so portable numerics are slow; remedy: pip install llvmlite"


class Report:
    """What a process computed with portable numerics."""

    def __init__(self, folder: str, version: str, counts: Callable[[], dict[str, dict[str, int]]]):
        self.folder, self.version, self.counts = folder, version, counts
        self.process = os.getpid()
        self.before: dict[str, dict[str, int]] = {}  # what the process had counted that this one was forked from
        self.path: Optional[str] = None

    def write(self, ended: bool) -> None:
        """Writes the file of this process, again at its end. A forked child has one if it has computed something."""
        if self.process != os.getpid():  # forked by what does not tell Python: what was counted before is not known
            return
        counts = {kind: _without(these, self.before.get(kind, {})) for kind, these in self.counts().items()}
        if not any(counts.values()) and self.before:
            return
        content = {"process": self.process, "version": self.version, "ended": ended, **counts}
        try:
            if self.path is None:
                self.path = _new_file(self.folder)
            with open(self.path, "w", encoding="utf-8") as file:
                json.dump(content, file)
        except OSError as error:
            _say(f"{error.filename or self.folder}: {error.strerror}; the operations of this process are not counted")

    def after_fork(self) -> None:
        self.process, self.path = os.getpid(), None
        self.before = {"forked": {}, **self.counts()}


def _without(counts: dict[str, int], before: dict[str, int]) -> dict[str, int]:
    new = {name: number - before.get(name, 0) for name, number in counts.items()}
    return {name: number for name, number in new.items() if number}


def _new_file(folder: str) -> str:
    """An empty file for this process. Two containers count processes alike, and a process may become another."""
    for number in range(1, 1000):
        path = os.path.join(folder, f"{os.getpid()}.json" if number == 1 else f"{os.getpid()}-{number}.json")
        try:
            open(path, "x").close()
            return path
        except FileExistsError:
            pass
    raise OSError(0, "too many processes of one number", folder)


def start() -> None:
    """Waits for PyTorch, as the variables REPRO_PORTABLE, _ALLOW and _PRECISION say."""
    _mark(LOADED)
    imports.finder.when_imported("torch", _switch_on)
    for name in OTHERS:
        imports.finder.when_imported(name, _mark_other)
    imports.start()


def _mark_other(framework: ModuleType) -> None:
    _mark(framework.__name__)


def _switch_on(torch: ModuleType) -> None:
    try:
        if sys.version_info < OLDEST:
            version = ".".join(map(str, sys.version_info[:2]))
            raise RuntimeError(f"Python {version} is too old for them; run the command with Python 3.11 or later")
        _warn_if_slow()
        mode = package.load("portable.pytorch.mode")
        allow = os.environ.get("REPRO_PORTABLE_ALLOW", "").split(",")
        mode.enable(allow=tuple(filter(None, allow)), precision=os.environ.get("REPRO_PORTABLE_PRECISION") or "high")
    except BaseException as error:
        _end(error)
    report = Report(os.environ["REPRO_PORTABLE"], str(torch.__version__), mode.counted)
    report.write(ended=False)
    os.register_at_fork(after_in_child=report.after_fork)
    atexit.register(report.write, True)
    _report_before_exit(report)


def _report_before_exit(report: Report) -> None:
    """Has os._exit report, too: by it the children of multiprocessing end."""
    leave = os._exit

    def _exit(status: int) -> NoReturn:
        report.write(ended=True)
        leave(status)

    os._exit = _exit


def _warn_if_slow() -> None:
    import importlib.util

    if importlib.util.find_spec("llvmlite") is None and _mark("slow"):
        _say(SLOW)


def _end(error: BaseException) -> NoReturn:
    """Ends the process with one line, whatever the program would do about an exception."""
    _mark("failed")
    text = " ".join(str(error).split()).removeprefix("portable: ") or type(error).__name__
    if isinstance(error, ModuleNotFoundError) and error.name == "numpy":
        text = "NumPy is not installed in this environment; remedy: pip install numpy"
    _say(f"this process ends, as portable numerics cannot be switched on in it: {text}")
    try:
        sys.stdout.flush()
    finally:
        os._exit(1)


def _mark(name: str) -> bool:
    """Makes an empty file in the folder; whether this process is the first to do so."""
    try:
        open(os.path.join(os.environ["REPRO_PORTABLE"], name), "x").close()
    except OSError:
        return False
    return True


def _say(text: str) -> None:
    """Writes one line for the user, where there is somewhere to write it."""
    try:
        sys.stderr.write(f"repro portable: {text}\n")
    except Exception:
        pass
