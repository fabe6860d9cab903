"""Changes inside a process: its seeds, its clock.

`verify` makes them to test a cause: REPRO_CHANGES holds them, as in `seed=0` or `clock=4`, with commas between them.
"""

import os
import random
import time
from types import ModuleType
from typing import Any

from . import dates, imports


def seed(value: str) -> None:
    """Every generator has this seed until the program sets another one."""
    number = int(value)
    random.seed(number)
    imports.finder.when_imported("numpy", lambda numpy: _seed_numpy(numpy, number))
    imports.finder.when_imported("torch", lambda torch: torch.manual_seed(number))
    imports.finder.when_imported("tensorflow", lambda tensorflow: tensorflow.random.set_seed(number))
    imports.start()


def _seed_numpy(numpy: ModuleType, number: int) -> None:
    """Of the old interface, and of each new generator that is made without a seed."""
    numpy.random.seed(number)
    default_rng = numpy.random.default_rng
    made: list[None] = []

    def seeded(seed: Any = None) -> Any:
        if seed is None:
            made.append(None)
            seed = [number, len(made)]
        return default_rng(seed)

    numpy.random.default_rng = seeded


def clock(value: str) -> None:
    """Time runs faster by a factor; what waits in C does not notice."""
    factor = int(value)
    for name in ("time", "perf_counter", "monotonic", "time_ns", "perf_counter_ns", "monotonic_ns"):
        setattr(time, name, _faster(getattr(time, name), factor))


def _faster(real: Any, factor: int) -> Any:
    begun = real()

    def now() -> Any:
        return begun + (real() - begun) * factor

    return now


def start() -> None:
    """Makes the changes that are asked for."""
    changes = {"seed": seed, "clock": clock, "date": dates.move}
    for change in os.environ["REPRO_CHANGES"].split(","):
        name, _, value = change.partition("=")
        changes[name](value)
