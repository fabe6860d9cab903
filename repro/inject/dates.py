"""Later dates inside a process.

Python's own clocks are moved: `time`, `datetime` and what stands on them. What asks the C library itself is not.
"""

import functools
import gc
import sys
import time
from types import ModuleType
from typing import Any

from . import imports


def move(value: str) -> None:
    """Moves the date by a number of seconds."""
    seconds = int(value)
    for name, shift in (("time", seconds), ("time_ns", seconds * 10**9)):
        setattr(time, name, _later(getattr(time, name), shift))
    for name in ("localtime", "gmtime", "ctime"):
        setattr(time, name, _of_now(getattr(time, name)))
    time.strftime, time.asctime = _today(time.strftime, 1), _today(time.asctime, 0)
    if "datetime" in sys.modules:
        move_datetime(sys.modules["datetime"])
    else:
        imports.finder.when_imported("datetime", move_datetime)
        imports.start()


def _later(real: Any, shift: Any) -> Any:
    return lambda: real() + shift


def _of_now(real: Any) -> Any:
    """A function of seconds, which are those of now where none are given."""

    @functools.wraps(real)
    def moved(seconds: Any = None) -> Any:
        return real(time.time() if seconds is None else seconds)

    return moved


def _today(real: Any, index: int) -> Any:
    """A function whose argument at a place is a date, which is that of now where none is given."""

    @functools.wraps(real)
    def moved(*args: Any) -> Any:
        return real(*args) if len(args) != index else real(*args, time.localtime())

    return moved


def move_datetime(module: ModuleType) -> None:
    """Makes datetime.now and utcnow ask the clock that was moved, as `today` does already.

    The class stays what it is, as pickles name it; its attributes are set behind its back.
    """
    import ctypes

    utc = module.timezone.utc

    def now(cls: Any, tz: Any = None) -> Any:
        return cls.fromtimestamp(time.time(), tz)

    def utcnow(cls: Any) -> Any:
        return cls.fromtimestamp(time.time(), utc).replace(tzinfo=None)

    (attributes,) = gc.get_referents(vars(module.datetime))
    attributes.update(now=classmethod(now), utcnow=classmethod(utcnow))
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(module.datetime))
