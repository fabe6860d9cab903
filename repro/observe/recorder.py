"""File of one process, a line per event.

It lies in FOLDER/steps, and is opened for each line and closed again: a program may close descriptors that are not its
own, and what it opens next would get the observer's lines. Each line ends with the SHA-256 of the seal before it and of
its own text without the seal. Nothing here stops the program.
"""

import atexit
import hashlib
import json
import os
import sys
import threading
import time
from typing import Any, Optional

from . import contents

Hashes = dict[str, dict[str, str]]  # SHA-256 by channel and name
Arrays = list[tuple[str, str, Any]]  # channel, name, array

INITIAL = "initial weights"  # the channel of the weights before an optimizer's first step
CHANGED = "changed weights"  # the channel of weights before a step that differ from those after the step before
TEXTS = ("scalars", "shapes")  # what a step has beside hashes, as text
COARSE = 5  # CLOCK_REALTIME_COARSE, for which Python has no name
LOADED = "loaded"  # the empty file in FOLDER/steps that shows that a Python process loaded the observer


class Recorder:
    """The lines of one process."""

    def __init__(self, folder: str, every: int):
        self.folder, self.every = folder, every
        self.frameworks: dict[str, Any] = {}  # imported modules by name
        self.first = os.getpid()  # the process that loaded the observer; forked ones are others
        self.broken = False  # True once a line could not be written
        self.reset()

    def reset(self) -> None:
        """Begins with nothing written, also in a forked child, which has its own file and its own count."""
        self.process = os.getpid()
        self.lock = threading.RLock()
        self.seconds = 0.0  # time that the program waited for the observer, in all threads
        self.local = threading.local()
        self.steps = 0
        self.latest: Optional[int] = None  # the number of the last step
        self.watched = False  # True once repro.watch was called
        self.path: Optional[str] = None
        self.seal = ""  # the seal of the last line
        self.weights: dict[str, str] = {}  # the last hashed weights, if each step is hashed
        self.notes: list[str] = []
        self.shared: set[str] = set()  # groups of ranks that gathered what they share, as "0,1"

    def is_due(self, step: int) -> bool:
        """True if the step of this number is hashed."""
        return step == 1 or step % self.every == 0

    @property
    def looks_between(self) -> bool:
        """True if changes of weights between two steps can be seen: each step must be hashed."""
        return self.every == 1

    def begin(self, number: Optional[int]) -> None:
        """Has checkpoints looked at, which were written after the last step, before that of this number; None: the end."""
        if look is not None and self.latest:
            look(self.latest)
        self.latest = number

    def count(self) -> int:
        """Counts one step; its number."""
        with self.lock:
            self.begin(self.steps + 1)
            self.steps += 1
            self.local.step = self.steps
            return self.steps

    def step(self, number: int, hashes: Hashes, samples: Optional[dict[str, Any]] = None) -> None:
        """Writes the line of a step without its empty channels, but for step 0; the weights before step 1 are those of step 0.

        `hashes` may have all weights before the step as CHANGED, of which those are written that are not as they were
        after the step before: without any, the empty channel says that they were looked at.
        """
        if wait is not None and number > 0:
            wait(number)
        if number == 1 and INITIAL in hashes:
            self.step(0, {INITIAL: hashes.pop(INITIAL), "generator": hashes["generator"]})
        if self.looks_between:
            self.weights.update(hashes.get(INITIAL, {}))
            for name, code in [*hashes.get(CHANGED, {}).items()]:
                if self.weights.get(name, code) == code:
                    del hashes[CHANGED][name]
            self.weights.update(hashes.get("weights", {}))
        texts = {name: hashes.pop(name, {}) for name in TEXTS}
        seen = {name: content for name, content in hashes.items() if content or name == CHANGED or not number}
        line = {"kind": "step", "step": number, "hashes": seen, "time": file_time(), **contents.conditions(hashes)}
        more = {**texts, "samples": samples, "shared": sorted(self.shared)}
        self.write({**line, **{name: content for name, content in more.items() if content}})

    def note(self, text: str) -> None:
        """Writes what could not be observed, once."""
        if text not in self.notes:
            self.notes.append(text)
            self.write({"kind": "note", "text": text})

    def unseen(self, text: str) -> None:
        """Writes, once, that this step was not fully observed: no answer that rests on it is `same`."""
        if text not in self.notes:
            self.notes.append(text)
            self.write({"kind": "note", "text": text, "unseen": getattr(self.local, "step", self.steps + 1)})

    def write(self, line: dict[str, Any]) -> None:
        if self.broken:
            return
        if self.process != os.getpid():  # forked without Python's hooks
            self.reset()
        with self.lock:
            try:
                if self.path is None:
                    self.path = self.create_file()
                    self.append(self.process_line())
                self.append(line)
            except OSError as error:
                self.broken = True
                self.mark_broken()
                file = error.filename or self.folder
                warn(f"{file}: {error.strerror}; the program goes on, and is no longer observed")

    def mark_loaded(self) -> None:
        """Says that a Python process of the command is observed, though it may write no line."""
        self.mark(LOADED)

    def mark(self, name: str) -> None:
        """Makes an empty file of this name beside the lines, if that is possible."""
        try:
            os.makedirs(os.path.join(self.folder, "steps"), exist_ok=True)
            open(os.path.join(self.folder, "steps", name), "a").close()
        except OSError:
            pass

    def create_file(self) -> str:
        """An empty file for this process. Two containers count processes alike: the second one's name gets a number."""
        rank = rank_from_environment()
        name = str(os.getpid()) if rank is None else f"rank-{rank}.{os.getpid()}"
        folder = os.path.join(self.folder, "steps")
        os.makedirs(folder, exist_ok=True)
        for n in range(1, 1000):
            path = os.path.join(folder, f"{name}.jsonl" if n == 1 else f"{name}-{n}.jsonl")
            try:
                with open(path, "x"):
                    return path
            except FileExistsError:
                pass
        raise OSError(0, "too many processes share one number", folder)

    def mark_broken(self) -> None:
        """Says that lines are missing, by an empty file: a full disk still has room for its name."""
        try:
            path = self.path or os.path.join(self.folder, "steps", f"{os.getpid()}.jsonl")
            open(f"{path}.broken", "x").close()
        except OSError:
            pass

    def append(self, line: dict[str, Any]) -> None:
        text = json.dumps(line)  # names in the framework's order, by which renamed arrays are paired
        seal = hashlib.sha256((self.seal + text).encode()).hexdigest()
        sealed = f'{text[:-1]}, "seal": "{seal}"}}\n'.encode()
        with open(str(self.path), "ab", buffering=0) as file:
            written = file.write(sealed)
            if written != len(sealed):  # a full disk writes only a part
                raise OSError(28, "No space left on device", self.path)
        self.seal = seal

    def process_line(self) -> dict[str, Any]:
        """The first line, which says which process this is."""
        torch = sys.modules.get("torch")  # whose own function portable numerics leave alone
        threads = getattr(getattr(torch, "_C", None), "get_num_threads", os.cpu_count)()
        return {
            "kind": "process",
            "pid": os.getpid(),
            "parent": os.getppid(),
            "forked": os.getpid() != self.first,
            "rank": rank_from_environment(),
            "argv": [str(word) for word in getattr(sys, "argv", [])],
            "python": ".".join(map(str, sys.version_info[:3])),
            "frameworks": {name: str(getattr(module, "__version__", "?")) for name, module in self.frameworks.items()},
            "threads": threads,
        }

    def end(self) -> None:
        """Writes what observing took, or that a framework was imported and no step was seen."""
        self.begin(None)
        if self.steps or self.watched:
            self.write({"kind": "end", "seconds": round(self.seconds, 6)})
        elif self.frameworks and not self.broken:
            names = ", ".join(sorted(self.frameworks))
            self.note(f"{names}: imported, but no step of an optimizer was seen")


def file_time() -> float:
    """The time that a file would get that is written now: Linux takes it from a clock that ticks every few ms."""
    try:
        return time.clock_gettime(COARSE)
    except (AttributeError, OSError):
        return time.time()


def rank_from_environment() -> Optional[int]:
    """The rank that torchrun or srun gave this process."""
    for name in ("RANK", "SLURM_PROCID"):
        value = os.environ.get(name, "")
        if value.isdigit():
            return int(value)
    return None


def warn(text: str) -> None:
    """Writes one line for the user, where there is somewhere to write it."""
    try:
        sys.stderr.write(f"repro: {text}\n")
    except Exception:
        pass


active: Optional[Recorder] = None  # the recorder of this process
wait: Any = (
    None  # called with a step before its line is written, if anybody waits there; what it raises is of the program
)
look: Any = None  # called with the number of the last step before the next one is counted, and at the end, if checkpoints are copied
raised: Optional[BaseException] = None  # what a signal's handler of the program has raised meanwhile


def start(folder: str, every: int) -> None:
    global active
    active = Recorder(folder, every)
    active.mark_loaded()
    os.register_at_fork(after_in_child=active.reset)
    atexit.register(active.end)


def note(text: str) -> None:
    if active is not None:
        active.note(text)


def unseen(text: str) -> None:
    if active is not None:
        active.unseen(text)


def has_native_numerics() -> bool:
    """False in portable numerics, with a note: a copy in float64 would round its operands as the program does."""
    if not os.environ.get("REPRO_PORTABLE"):
        return True
    note("in portable numerics, calls of modules in PyTorch and TensorFlow are not computed in float64")
    return False


def add_framework(module: Any) -> None:
    if active is not None:
        active.frameworks[module.__name__] = module


def is_worker() -> bool:
    """True in a worker process of joblib: timing decides which worker does what."""
    process = sys.modules.get("multiprocessing.process")
    return process is not None and type(process.current_process()).__name__ == "LokyProcess"


def is_busy() -> bool:
    """True while the observer itself makes calls in this thread."""
    return active is not None and bool(getattr(active.local, "busy", False))


def never_raise(function: Any) -> Any:
    """The function, except that an exception in it makes the step incomplete, and the program goes on.

    Its seconds are counted.
    """

    def guarded(*args: Any, **kwargs: Any) -> Any:
        recorder, began = active, time.perf_counter()
        outermost = recorder is not None and not getattr(recorder.local, "busy", False)
        if recorder is not None:
            recorder.local.busy = True
        try:
            return function(*args, **kwargs)
        except Exception as error:
            if error is raised:
                raise
            name = f"{function.__module__.split('.')[-1]}.{function.__name__}"
            unseen(f"{name} failed: {type(error).__name__}: {error}")
            return None
        finally:
            if recorder is not None and outermost:
                recorder.local.busy = False
                vars(recorder.local).pop("step", None)
                with recorder.lock:
                    recorder.seconds += time.perf_counter() - began

    return guarded
