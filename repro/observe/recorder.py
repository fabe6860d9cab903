"""Writes what was seen: a file per process in DIR/steps, a line per event. It never stops the program.

The file is opened for each line and closed again. A program may close descriptors that are not its own, and what it
opens next would get the observer's lines.
"""

import atexit
import json
import os
import sys
import threading
import time
from typing import Any, Optional

Hashes = dict[str, dict[str, str]]


class Recorder:
    """The lines of one process."""

    def __init__(self, folder: str, every: int):
        self.folder, self.every = folder, every
        self.frameworks: dict[str, Any] = {}  # module of each that was imported
        self.broken = False
        self.begin()

    def begin(self) -> None:
        """Nothing is written yet. Called again in a child that was forked: it has its own file and its own count."""
        self.lock = threading.RLock()
        self.seconds = 0.0  # that the program waited for the observer, in all threads
        self.local = threading.local()
        self.steps = 0
        self.watched = False  # by repro.watch
        self.path: Optional[str] = None
        self.notes: list[str] = []

    def is_due(self, step: int) -> bool:
        """Whether the step of this number is hashed."""
        return step == 1 or step % self.every == 0

    def count(self) -> int:
        """Counts one step; its number."""
        with self.lock:
            self.steps += 1
            return self.steps

    def step(self, number: int, hashes: Hashes) -> None:
        """Writes the line of a step. A channel in which nothing was seen is left out."""
        self.write({"kind": "step", "step": number, "hashes": {name: seen for name, seen in hashes.items() if seen}})

    def note(self, text: str) -> None:
        """Writes what could not be observed, once."""
        if text not in self.notes:
            self.notes.append(text)
            self.write({"kind": "note", "text": text})

    def write(self, line: dict[str, Any]) -> None:
        if self.broken:
            return
        with self.lock:
            try:
                if self.path is None:
                    self.path = self.create()
                    self.append(self.process())
                self.append(line)
            except OSError as error:
                self.broken = True
                say(
                    f"{error.filename or self.folder}: {error.strerror}; the program goes on, and is no longer observed"
                )

    def create(self) -> str:
        """An empty file for this process. Two containers count processes alike: the second one's name gets a number."""
        rank = rank_of()
        name = str(os.getpid()) if rank is None else f"rank-{rank}.{os.getpid()}"
        folder = os.path.join(self.folder, "steps")
        os.makedirs(folder, exist_ok=True)
        for again in range(1, 1000):
            path = os.path.join(folder, f"{name}.jsonl" if again == 1 else f"{name}-{again}.jsonl")
            try:
                with open(path, "x"):
                    return path
            except FileExistsError:
                pass
        raise OSError(0, "too many processes of one number", folder)

    def append(self, line: dict[str, Any]) -> None:
        with open(str(self.path), "ab", buffering=0) as file:
            text = json.dumps(line, sort_keys=True).encode() + b"\n"
            written = file.write(text)
            if written != len(text):  # a disk that is full takes a part
                raise OSError(28, "No space left on device", self.path)

    def process(self) -> dict[str, Any]:
        """The line that says which process this is."""
        versions = {name: str(getattr(module, "__version__", "?")) for name, module in self.frameworks.items()}
        torch = sys.modules.get("torch")
        threads = torch.get_num_threads() if hasattr(torch, "get_num_threads") else os.cpu_count()  # type: ignore
        return {
            "kind": "process",
            "pid": os.getpid(),
            "parent": os.getppid(),
            "rank": rank_of(),
            "argv": [str(word) for word in getattr(sys, "argv", [])],
            "python": ".".join(map(str, sys.version_info[:3])),
            "frameworks": versions,
            "threads": threads,
        }

    def end(self) -> None:
        """What observing took. A process that imported a framework and took no step says so."""
        if self.steps or self.watched:
            self.write({"kind": "end", "seconds": round(self.seconds, 6)})
        elif self.frameworks and not self.broken:
            names = ", ".join(sorted(self.frameworks))
            self.note(f"{names}: imported, but no step of an optimizer was seen")


def rank_of() -> Optional[int]:
    """The rank that torchrun or srun gave this process."""
    for name in ("RANK", "SLURM_PROCID"):
        value = os.environ.get(name, "")
        if value.isdigit():
            return int(value)
    return None


def say(text: str) -> None:
    """One line for the user, where there is somewhere to write it."""
    try:
        sys.stderr.write(f"repro: {text}\n")
    except Exception:
        pass


active: Optional[Recorder] = None


def start(folder: str, every: int) -> None:
    global active
    active = Recorder(folder, every)
    os.register_at_fork(after_in_child=active.begin)
    atexit.register(active.end)


def note(text: str) -> None:
    if active is not None:
        active.note(text)


def quietly(watch: Any) -> Any:
    """The function, except that what goes wrong in it is a note, and the program goes on. Its seconds are counted."""

    def watched(*arguments: Any, **named: Any) -> Any:
        to, began = active, time.perf_counter()
        outermost = to is not None and not getattr(to.local, "busy", False)
        if to is not None:
            to.local.busy = True
        try:
            return watch(*arguments, **named)
        except Exception as error:
            note(f"{watch.__module__.split('.')[-1]}.{watch.__name__} failed: {type(error).__name__}: {error}")
            return None
        finally:
            if to is not None and outermost:
                to.local.busy = False
                with to.lock:
                    to.seconds += time.perf_counter() - began

    return watched
