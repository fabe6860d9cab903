"""When a command has written what it may resume from."""

import itertools
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from repro.record import outputs
from repro.verify import checkpoints
from repro.verify.checkpoints import Checkpoints, is_due

STEPS = "steps"
CLOCK = itertools.count(1)
"""The times of files and steps, in the order in which they are written."""


class Scripted:
    """A process that does one thing, or several, each time that it is asked whether it has ended."""

    def __init__(self, folder: Path, course: Iterator[Any]) -> None:
        self.folder, self.course, self.taken = folder, course, -1

    def poll(self) -> int | None:
        events = next(self.course, None)
        if events is None:
            return 0
        for event in events if isinstance(events, tuple) else (events,):
            self.do(event)
        return None

    def do(self, event: Callable[[Path], None] | int) -> None:
        if callable(event):
            event(self.folder)
            return
        with open(self.folder / STEPS / "1.jsonl", "a") as file:
            file.write(json.dumps({"kind": "step", "step": event, "hashes": {}, "time": next(CLOCK)}) + "\n")
        self.taken = event


def save(name: str) -> Callable[[Path], None]:
    """Writes a file, or adds to it."""

    def write(folder: Path) -> None:
        path = folder / "run" / name
        with open(path, "a") as file:
            file.write("1")
        os.utime(path, (now := next(CLOCK), now))

    return write


def move(source: str, name: str) -> Callable[[Path], None]:
    return lambda folder: os.replace(folder / "run" / source, folder / "run" / name)


def each_step(*done: Callable[[Path], None]) -> list[Any]:
    """All of it after each step from the first to the 20th."""
    return [0, *(event for step in range(1, 21) for event in (step, *done))]


TEMPORARY = [save("new"), 4, save("new"), 5, save("new"), 6, move("new", "checkpoint"), 7, 8]

BOTH = save("weights"), save("number")

COURSES: dict[str, tuple[list[Any], int | None]] = {
    "a file, and a step since": ([0, 1, 2, save("checkpoint"), 3, 4, 5, 6], 4),
    "one before the stop": ([0, 1, save("checkpoint"), 2, 3, 4, 5], 3),
    "one that is written beside three steps, and then renamed": ([0, 1, 2, 3, *TEMPORARY], 7),
    "one that is replaced after each step": (each_step(save("new"), move("new", "checkpoint")), 3),
    "one that is written over after each step": (each_step(save("checkpoint")), 5),
    "what is there before the first step": ([save("settings"), 0, 1, 2, 3, 4, save("checkpoint"), 5, 6, 7], 6),
    "what could not be resumed from": ([0, 1, save("log"), 2, save("log"), 3, save("log"), 4, 5], None),
    "one of two files that belong together": ([0, 1, BOTH, 2, (3, save("weights")), save("number"), 4, 5], 4),
    "a line after each step": ([0, 1, BOTH, *((step, save("metrics")) for step in range(2, 9))], 6),
    "the last step": ([0, 1, 2, 3, save("checkpoint")], None),
}


@pytest.mark.parametrize(("course", "taken"), COURSES.values(), ids=COURSES)
def test_a_stop_waits_for_a_whole_file_and_a_step_since(
    course: list[Any], taken: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "PAUSE", 0)
    monkeypatch.setattr(checkpoints, "send", lambda *_: None)
    for name in (STEPS, "run"):
        (tmp_path / name).mkdir()
    process: Any = Scripted(tmp_path, iter(course))
    files = Checkpoints(lambda: outputs.folder(tmp_path / "run"), {}, {str(tmp_path / "run" / "log")})
    assert is_due(process, tmp_path / STEPS, 2, files) == (taken is not None)
    assert taken is None or process.taken == taken


def test_lines_that_come_while_files_are_looked_at_are_no_step_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file that was looked at may be one that the program was still writing after them."""
    monkeypatch.setattr(checkpoints, "PAUSE", 0)
    monkeypatch.setattr(checkpoints, "send", lambda *_: None)
    for name in (STEPS, "run"):
        (tmp_path / name).mkdir()
    process: Any = Scripted(tmp_path, iter([0, 1, 2, save("checkpoint"), 3, 5, 6]))
    looked: list[int] = []

    def files() -> dict[str, outputs.State]:
        result = outputs.folder(tmp_path / "run")
        looked.append(process.taken)
        if process.taken == 3:
            with open(tmp_path / STEPS / "1.jsonl", "a") as file:
                file.write(json.dumps({"kind": "step", "step": 4, "hashes": {}}) + "\n")
        return result

    assert is_due(process, tmp_path / STEPS, 2, Checkpoints(files, {}))
    assert process.taken == 5 and looked == [0, 2, 3, 5, 5]
