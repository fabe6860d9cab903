"""Delays in what runs beside the program's first thread.

Threads, worker processes and ranks wait for a moment when they begin, hand something over, or take a step of an optimizer.
REPRO_DELAYS is a seed: the n-th wait of a thread is as long in each run. With a minus before it what waits long waits
shortly, and so what comes first in one of the two comes last in the other. Nothing here draws from a generator.
"""

import functools
import hashlib
import os
import sys
import threading
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from . import imports

BEGIN, MOST, ALL = 0.2, 0.02, 5.0  # the most seconds: of the first wait, of another one, of all in a process
NUMBERED, SLOWED = (
    "delays-",
    "slowed-",
)  # files in the record's folder: a Python process, by number; what was slowed
RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID")
FUNCTIONS = {
    "queue": ("Queue.put", "Queue.get"),
    "multiprocessing.queues": ("Queue.put", "SimpleQueue.put"),
    "concurrent.futures.thread": ("_WorkItem.run",),
}
"""The functions that begin with a wait, by module."""


class Delays:
    """The waits of one process."""

    def __init__(self, seed: str, folder: str):
        self.seed, self.folder = seed, os.path.join(folder, "steps")
        rank = next((os.environ[name] for name in RANKS if os.environ.get(name)), None)
        number = next(n for n in range(1000) if self.mark(f"{NUMBERED}{n}", str(os.getpid())) or n == 999)
        self.kind = "processes" if rank is None else "ranks"
        self.name = f"process {number}" if rank is None else f"rank {rank}"
        self.is_beside = rank is not None or (number > 0 and self.first_runs())
        self.children, self.waited = 0, 0.0
        self.local = threading.local()

    def mark(self, name: str, content: str = "") -> bool:
        """Makes a file in the record's folder; whether there was none."""
        try:
            with open(os.path.join(self.folder, name), "x") as file:
                file.write(content)
        except OSError:
            return False
        return True

    def first_runs(self) -> bool:
        """True while the command's first Python process runs; after that, this one may be alone."""
        with open(os.path.join(self.folder, f"{NUMBERED}0")) as file:
            return os.path.exists(f"/proc/{file.read()}")

    def wait(self, *_: object, most: float = MOST) -> None:
        """Waits, in a thread or a process that is not the first."""
        thread = getattr(self.local, "thread", None)
        if not (thread or self.is_beside) or self.waited >= ALL:
            return
        count = self.local.count = getattr(self.local, "count", 0) + 1
        code = hashlib.blake2b(f"{self.seed.lstrip('-')}/{self.name}/{thread}/{count}".encode(), digest_size=4).digest()
        share = int.from_bytes(code, "big") / 2**32
        seconds = most * (1 - share if self.seed.startswith("-") else share)
        self.waited += seconds
        self.mark(SLOWED + ("threads" if thread else self.kind))
        time.sleep(seconds)

    def slow_thread(self, thread: Any) -> None:
        """Makes a thread wait when it has begun, so that its starter goes on first."""
        run = thread.run

        def slowed() -> None:
            self.local.thread = thread.name
            self.wait(most=BEGIN)
            run()

        thread.run = slowed

    def count_child(self) -> None:
        """Counts a child before it is forked, so that each waits otherwise."""
        self.children += 1

    def begin_child(self) -> None:
        """Begins to slow this process, which was forked."""
        self.name, self.is_beside = f"{self.name}.{self.children}", True
        self.children, self.waited = 0, 0.0
        self.local = threading.local()
        self.wait(most=BEGIN)


def start() -> None:
    """Slows what runs beside, as the variable REPRO_DELAYS says."""
    delays = Delays(os.environ["REPRO_DELAYS"], os.environ.get("REPRO_OBSERVE", ""))
    _call_first(threading.Thread, "start", delays.slow_thread)
    os.register_at_fork(before=delays.count_child, after_in_child=delays.begin_child)
    for name in FUNCTIONS:
        if name in sys.modules:
            _slow_functions(delays, sys.modules[name])
        else:
            imports.finder.when_imported(name, functools.partial(_slow_functions, delays))
    imports.finder.when_imported("torch.optim.optimizer", functools.partial(_slow_steps, delays))
    imports.start()
    delays.wait(most=BEGIN)


def _slow_functions(delays: Delays, module: ModuleType) -> None:
    for function in FUNCTIONS[module.__name__]:
        owner, _, name = function.partition(".")
        _call_first(getattr(module, owner, None), name, delays.wait)


def _slow_steps(delays: Delays, optimizers: ModuleType) -> None:
    register = getattr(optimizers, "register_optimizer_step_pre_hook", None)
    if register:
        register(delays.wait)


def _call_first(owner: Any, name: str, first: Callable[..., None]) -> None:
    """Makes a function of a class call another one first, whatever comes of that; nothing if there is no such name."""
    function = getattr(owner, name, None)
    if function is None:
        return

    @functools.wraps(function)
    def slowed(*args: Any, **kwargs: Any) -> Any:
        try:
            first(*args)
        except Exception:
            pass
        return function(*args, **kwargs)

    setattr(owner, name, slowed)
