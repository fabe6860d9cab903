"""Sources of seeds: the time, the number of the process, the system's entropy.

All are fixed, so that a program that takes its seed from one of them has the same seed in each run. The time stands
still for the first calls from each line, for seeds in nanoseconds, and then goes on there: what libraries ask while they
are imported, or compile, is no call of the program's.
"""

import os
import random
import sys
import time
from collections import Counter
from types import FrameType, ModuleType
from typing import Any, Optional

from . import dates, imports

CALLS = 50  # calls for the time from one line: a program takes few seeds there, and a loop that waits takes more
BEGUN = 1_700_000_000  # the second at which each process begins
LIBRARY = os.path.dirname(os.__file__)  # the folder of Python's own modules
HERE = os.path.dirname(__file__)
STEP = 1_123_456_789  # nanoseconds by which a seed moves it: a program's seed may be the microsecond alone


def hold(value: str) -> None:
    """Fixes the entropy by this seed, and the time at which each process begins; another seed gives another time."""
    numbers = random.Random(int(value))
    os.urandom = numbers.randbytes
    vars(random)["_urandom"] = numbers.randbytes  # SystemRandom uses this, and so does `secrets`
    random.seed = _seeded(random.seed, numbers)
    imports.finder.when_imported("numpy", lambda numpy: _hold_numpy(numpy, numbers))
    imports.finder.when_imported("torch", lambda torch: _hold_torch(torch, numbers))
    clock = _Clock(time.time_ns, BEGUN * 10**9 + int(value) * STEP)
    time.time_ns = clock.nanoseconds
    time.time = clock.seconds
    imports.finder.when_imported("datetime", dates.move_datetime)
    numbered = _ProcessNumber(os.getpid, 1000 + int(value))
    os.getpid = numbered.get
    os.register_at_fork(before=numbered.count_child, after_in_child=numbered.begin_child)
    imports.start()


class _ProcessNumber:
    """A number of this process that is the same in each run, for the script and for functions that make a seed.

    Libraries get the real one: they hand it to the system, or know their children by it.
    """

    def __init__(self, real: Any, number: int):
        self.real, self.number, self.children = real, number, 0

    def get(self) -> int:
        code = sys._getframe(1).f_code
        is_library = code.co_filename.startswith(LIBRARY) or "site-packages" in code.co_filename
        return int(self.real()) if is_library and "seed" not in code.co_name else self.number

    def count_child(self) -> None:
        self.children += 1

    def begin_child(self) -> None:
        self.number, self.children = self.number * 100 + self.children, 0


class _Clock:
    """Begins at a time, moves by 1 ns with each of the first calls from a line, and then goes on as the real one."""

    def __init__(self, real: Any, begun: int):
        self.real, self.begun, self.offset = real, begun, 0
        self.calls: Counter[tuple[str, int]] = Counter()  # by file and line

    def nanoseconds(self) -> int:
        caller: Optional[FrameType] = sys._getframe(1)
        while caller is not None and os.path.dirname(caller.f_code.co_filename) == HERE:  # as of datetime, or seconds
            caller = caller.f_back
        place = (caller.f_code.co_filename, caller.f_lineno) if caller else ("", 0)
        self.calls[place] += 1
        if self.calls[place] <= CALLS:
            return self.begun + self.calls[place]
        self.offset = self.offset or self.begun + CALLS - self.real()
        return int(self.real() + self.offset)

    def seconds(self) -> float:
        return self.nanoseconds() / 10**9


def _seeded(real: Any, numbers: random.Random) -> Any:
    """Wraps random.seed, which without an argument takes a seed from the system."""

    def seed(a: Any = None, version: int = 2) -> None:
        real(numbers.getrandbits(64) if a is None else a, version)

    return seed


def _hold_numpy(numpy: ModuleType, numbers: random.Random) -> None:
    real = numpy.random.seed
    numpy.random.seed = lambda seed=None: real(numbers.getrandbits(32) if seed is None else seed)


def _hold_torch(torch: ModuleType, numbers: random.Random) -> None:
    def seed() -> int:
        number = numbers.getrandbits(63)
        torch.manual_seed(number)
        return number

    vars(torch)["seed"] = vars(torch.random)["seed"] = seed
