"""What a process does when a moment comes: it saves first values, describes its own, or puts one part back.

A moment comes right before something is taken from the parts for the first time: when a loader begins, when an optimizer
takes its first step. By then the program has restored what it restores. A part that the process puts back is given, at
each moment, the value that the first process had at that moment: so it is as if the program had not restored it.
"""

import functools
import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, Optional

from . import values
from .values import Items

SAVE, DESCRIBE, PLANT = "save", "describe", "plant"
PLANTED = "planted"  # the file in the record's steps/ that says that a part was put back
FAILED = "planting-failed"  # the file that says why it could not be


class Part(NamedTuple):
    """A part of a training that a resumed run restores."""

    read: Callable[[], Items]
    write: Callable[[Items], None]


class Control:
    """The task of this process."""

    def __init__(self, task: str, folder: str, part: str = ""):
        self.task, self.folder, self.part = task, folder, part
        self.process = os.getpid()
        self.writer = values.Writer(folder, task == SAVE)
        self.come: set[str] = set()
        self.owns: Optional[bool] = None  # whether this is the process of the command that trains, or one of several

    def is_first(self, moment: str) -> bool:
        """True if a moment has not come before in this process, which is no fork of one in which it began."""
        if moment in self.come or os.getpid() != self.process:
            return False
        self.come.add(moment)
        return True

    def meet(self, moment: str, parts: dict[str, Part]) -> None:
        """Carries out the task at a moment."""
        if self.task == PLANT:
            self.plant(moment, parts)
        elif self.claim():
            self.writer.add(moment, ((name, part.read()) for name, part in parts.items()))

    def plant(self, moment: str, parts: dict[str, Part]) -> None:
        """Puts the part back, if it is one of these."""
        items = values.read(self.folder, moment, self.part) if self.part in parts else None
        if items is not None:
            parts[self.part].write(items)
            mark(PLANTED, moment)

    def claim(self) -> bool:
        """True if no other process of the command has saved its values: of several, nobody knows which is which."""
        if self.owns is None:
            try:
                open(os.path.join(self.folder, "owner"), "x").close()
                self.owns = True
            except FileExistsError:
                open(os.path.join(self.folder, "several"), "a").close()
                self.owns = False
        return self.owns


def mark(name: str, text: str) -> None:
    """Leaves a line in a file of the record."""
    folder = os.environ.get("REPRO_OBSERVE")
    if folder:
        with open(os.path.join(folder, "steps", name), "a") as file:
            file.write(f"{text}\n")


def never_raise(function: Any) -> Any:
    """The function, except that an exception in it ends in a file, and the program goes on."""

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            try:
                mark(FAILED, f"{type(error).__name__}: {error}"[:500])
            except OSError:
                pass
            return None

    return guarded


active: Optional[Control] = None


def start() -> None:
    """Takes over the task that REPRO_CONTROLS names: `save=FOLDER`, `describe=FOLDER`, `plant=FOLDER`."""
    global active
    task, _, folder = os.environ["REPRO_CONTROLS"].partition("=")
    if task != PLANT:
        os.makedirs(folder, exist_ok=True)
    active = Control(task, folder, os.environ.get("REPRO_PLANT", ""))


def module(name: str) -> Any:
    """A module that the program has imported, or None."""
    return sys.modules.get(name)
