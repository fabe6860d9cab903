"""Changes inside a process: its seeds, its clock, its draws.

`verify` makes them to test a cause: REPRO_CHANGES holds them, as in `seed=0` or `clock=4`, with commas between them.
"""

import itertools
import os
import random
import sys
import time
from types import ModuleType
from typing import Any

from . import batches, dates, draws, imports, origins

CLOCKS = ("time", "perf_counter", "monotonic", "time_ns", "perf_counter_ns", "monotonic_ns")
LENGTH = 400  # of the name of a run's folder, which has a size of its own in memory
ASK, NO_RANDOM_ADDRESSES = 0xFFFFFFFF, 0x0040000  # of Linux' personality()
STANDARD: frozenset[str] = getattr(sys, "stdlib_module_names", frozenset())  # from Python 3.10 on


def seed(value: str) -> None:
    """Seeds every generator, until the program sets another seed."""
    number = int(value)
    random.seed(number)
    imports.finder.when_imported("numpy", lambda numpy: _seed_numpy(numpy, number))
    imports.finder.when_imported("torch", lambda torch: torch.manual_seed(number))
    imports.finder.when_imported("tensorflow", lambda tensorflow: _seed_tensorflow(tensorflow, number))
    imports.start()


def _seed_numpy(numpy: ModuleType, number: int) -> None:
    """Seeds NumPy's old interface, and each new generator that is made without a seed."""
    numpy.random.seed(number)
    default_rng = numpy.random.default_rng
    made: list[None] = []

    def seeded(seed: Any = None) -> Any:
        if seed is None:
            made.append(None)
            seed = [number, len(made)]
        return default_rng(seed)

    numpy.random.default_rng = seeded


def _seed_tensorflow(tensorflow: ModuleType, number: int) -> None:
    """Seeds TensorFlow's operations, and each new Generator that takes its state from the system's entropy."""
    tensorflow.random.set_seed(number)
    kind = tensorflow.random.Generator
    made: list[None] = []

    def seeded(alg: Any = None) -> Any:
        made.append(None)
        return kind.from_seed(number * 1000 + len(made), alg)

    kind.from_non_deterministic_state = staticmethod(seeded)


def clock(value: str) -> None:
    """Makes time run faster by a factor; what waits in C does not notice."""
    factor = int(value)
    for name in CLOCKS:
        setattr(time, name, _faster(getattr(time, name), factor))


def _faster(real: Any, factor: int) -> Any:
    begun = real()

    def now() -> Any:
        return begun + (real() - begun) * factor

    return now


def ticks(value: str) -> None:
    """Makes time move by so many milliseconds whenever the program asks for it, and not otherwise: in each run alike.

    Python's own modules and the observer, which wait and measure, get the real one.
    """
    for name in CLOCKS:
        setattr(time, name, _Ticking(getattr(time, name), int(value) * (10**6 if name.endswith("_ns") else 0.001)).now)
    imports.finder.when_imported("datetime", dates.move_datetime)
    imports.start()


class _Ticking:
    """A clock that begins at 0 in seconds, or in nanoseconds, and moves by one tick with each call."""

    def __init__(self, real: Any, tick: Any):
        self.real, self.tick, self.calls = real, tick, 0

    def now(self) -> Any:
        module = sys._getframe(1).f_globals.get("__name__", "")
        if module.startswith("_repro.observe") or module.partition(".")[0] in STANDARD:
            return self.real()
        self.calls += 1
        return self.calls * self.tick


def draw(value: str) -> None:
    """Draws one more number from a generator after a step of PyTorch: `torch@8`."""
    generator, _, step = value.partition("@")
    imports.finder.when_imported("torch", lambda torch: _draw_after_a_step(torch, generator, int(step)))
    imports.start()


def draw_first(generator: str) -> None:
    """Draws from a generator before a loader of PyTorch begins to hand out batches."""
    imports.finder.when_imported("torch", lambda torch: _draw_before_batches(torch, generator))
    imports.start()


def _draw_after_a_step(torch: ModuleType, generator: str, step: int) -> None:
    once, taken = _Once(torch, generator), itertools.count(1)

    def after(*_: Any) -> None:
        if next(taken) == step:
            once.draw()

    sys.modules["torch.optim.optimizer"].register_optimizer_step_post_hook(after)


def _draw_before_batches(torch: ModuleType, generator: str) -> None:
    loader, once = torch.utils.data.DataLoader, _Once(torch, generator)
    begin = loader.__iter__

    def __iter__(self: Any) -> Any:  # noqa: N807
        once.draw()
        return begin(self)

    loader.__iter__ = __iter__


class _Once:
    """One number of a generator."""

    def __init__(self, torch: ModuleType, generator: str):
        self.torch, self.generator, self.drawn = torch, generator, False

    def draw(self) -> None:
        if self.drawn:
            return
        self.drawn = True
        if self.generator == "numpy":
            sys.modules["numpy"].random.random()
        elif self.generator == "python":
            random.random()
        else:
            self.torch.rand(1, device="cpu" if self.generator == "torch" else self.generator)


def move_objects(value: str) -> None:
    """Allocates some objects of each size first of all, and keeps them: all others lie elsewhere than they would."""
    moved.extend(bytes(size) for size in range(1, 512, 8) for _ in range(int(value)))


moved: list[bytes] = []


def place_objects(value: str) -> None:
    """Starts this program once more without random addresses, so that all lies where it does in each run; then as above."""
    import ctypes

    system = ctypes.CDLL(None)
    persona = system.personality(ASK)
    if not persona & NO_RANDOM_ADDRESSES:
        tried = "REPRO_PLACED" in os.environ
        if not tried and system.personality(persona | NO_RANDOM_ADDRESSES) != -1 and hasattr(sys, "orig_argv"):
            os.environ["REPRO_PLACED"] = "1"  # else a system that forgets it would start the program again and again
            os.environ["REPRO_OBSERVE"] = os.environ.get("REPRO_OBSERVE", "").ljust(LENGTH, "/")  # each run has another
            os.execv(sys.executable, sys.orig_argv)
        sys.stderr.write(
            "repro: this process ends: its addresses cannot be held here, as personality() is forbidden, which Docker does\n"
        )
        os._exit(1)  # a run with other addresses would prove the wrong thing
    move_objects(value)


def start() -> None:
    """Makes the changes that are asked for."""
    changes = {
        "seed": seed,
        "origin": origins.hold,
        "clock": clock,
        "ticks": ticks,
        "date": dates.move,
        "objects": move_objects,
        "place": place_objects,
        "draw": draw,
        "draw_first": draw_first,
        "draws": draws.separate,
        "last_batch": batches.keep_last,
        "statistics": batches.use_running,
    }
    for change in os.environ["REPRO_CHANGES"].split(","):
        name, _, value = change.partition("=")
        changes[name](value)
