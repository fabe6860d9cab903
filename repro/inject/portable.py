"""Portable numerics in somebody else's process.

Switched on when a framework has been imported. A process in which that fails ends: it would train with other numerics,
and nobody would know. What was computed is written to the folder REPRO_PORTABLE, a file for each process and framework.
"""

import atexit
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from types import ModuleType
from typing import NoReturn, Optional

from . import imports, package

OLDEST = (3, 11)
MODULES = {"torch": "pytorch", "tensorflow": "tensorflow", "jax": "jax"}
"""The folder of repro/portable for each framework's module."""

LOADED = "loaded"  # an empty file in the folder: a Python process got here
SLOW = "llvmlite is not installed in this environment, so portable numerics are slow; remedy: pip install llvmlite"


class WrittenReport:
    """The report of a process: what it computed with portable numerics of a framework."""

    def __init__(self, folder: str, framework: str, version: str, counts: Callable[[], dict[str, dict[str, int]]]):
        self.folder, self.framework, self.version, self.counts = folder, framework, version, counts
        self.process = os.getpid()
        self.before: dict[str, dict[str, int]] = {}  # counts of the process that this one was forked from
        self.path: Optional[str] = None

    def write(self, ended: bool) -> None:
        """Writes the file of this process, again at its end. A forked child has one if it has computed something."""
        if self.process != os.getpid():  # forked without Python's hooks: the counts before are unknown
            return
        counts = {kind: _without(these, self.before.get(kind, {})) for kind, these in self.counts().items()}
        if not any(counts.values()) and self.before:
            return
        content = {
            "process": self.process,
            "framework": self.framework,
            "version": self.version,
            "ended": ended,
            **counts,
        }
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
    raise OSError(0, "too many processes share one number", folder)


class Switch:
    """Portable numerics as the variables request them, read before the program can change these."""

    def __init__(self, variables: Mapping[str, str]):
        self.folder = variables["REPRO_PORTABLE"]
        self.allow = tuple(filter(None, variables.get("REPRO_PORTABLE_ALLOW", "").split(",")))
        self.precision = variables.get("REPRO_PORTABLE_PRECISION") or "high"
        self.elastic = bool(variables.get("REPRO_PORTABLE_ELASTIC"))

    def on(self, framework: ModuleType) -> None:
        """Switches portable numerics on; where that fails, the process ends."""
        try:
            if sys.version_info < OLDEST:
                version = ".".join(map(str, sys.version_info[:2]))
                raise RuntimeError(f"Python {version} is too old for them; run the command with Python 3.11 or later")
            self.warn_if_slow()
            name = MODULES[framework.__name__]
            mode = package.load(f"portable.modes.{name}")
            if self.elastic and name != "pytorch":
                raise RuntimeError("--elastic is for programs that use PyTorch alone")
            more = {"elastic": True} if self.elastic else {}
            mode.enable(allow=_allowed(self.allow, name), precision=self.precision, **more)
        except BaseException as error:
            self.end(error)
        report = WrittenReport(self.folder, name, str(framework.__version__), mode.counted)
        report.write(ended=False)
        os.register_at_fork(after_in_child=report.after_fork)
        atexit.register(report.write, True)
        _report_before_exit(report)

    def warn_if_slow(self) -> None:
        """Says once, for all processes of the command, that llvmlite is missing."""
        if importlib.util.find_spec("llvmlite") is None and self.mark("slow"):
            _say(SLOW)

    def end(self, error: BaseException) -> NoReturn:
        """Ends the process with one line, whatever the program would do about an exception."""
        self.mark("failed")
        text = " ".join(str(error).split()).removeprefix("portable: ") or type(error).__name__
        if isinstance(error, ModuleNotFoundError) and error.name == "numpy":
            text = "NumPy is not installed in this environment; remedy: pip install numpy"
        _say(f"this process ends, because portable numerics cannot be enabled in it: {text}")
        try:
            sys.stdout.flush()
        finally:
            os._exit(1)

    def mark(self, name: str) -> bool:
        """Makes an empty file in the folder; whether this process is the first to do so."""
        try:
            open(os.path.join(self.folder, name), "x").close()
        except OSError:
            return False
        return True


def _allowed(names: Sequence[str], framework: str) -> list[str]:
    """The operations allowed in a framework: `jax:svd` is for JAX alone, `svd` for all."""
    others = tuple(f"{other}:" for other in MODULES.values() if other != framework)
    return [name.removeprefix(f"{framework}:") for name in names if not name.startswith(others)]


def start() -> None:
    """Waits for frameworks, as the variables REPRO_PORTABLE, _ALLOW and _PRECISION say."""
    switch = Switch(os.environ)
    switch.mark(LOADED)
    if sys.version_info >= OLDEST:
        cores = package.load("portable.modes.common.cores")
        cores.install(ExitStack())
        imports.finder.when_imported("psutil", cores.answer_for_psutil)
    for name in MODULES:
        imports.finder.when_imported(name, switch.on)
    imports.start()


def _report_before_exit(report: WrittenReport) -> None:
    """Makes os._exit report, too: children of multiprocessing end by it."""
    leave = os._exit

    def _exit(status: int) -> NoReturn:
        report.write(ended=True)
        leave(status)

    os._exit = _exit


def _say(text: str) -> None:
    """Writes one line for the user, where there is somewhere to write it."""
    try:
        sys.stderr.write(f"repro portable: {text}\n")
    except Exception:
        pass
