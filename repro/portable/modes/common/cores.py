"""One number of cores on every machine for Python code that asks for it.

Programs start one loader worker per core, or cut their data into one piece per core, and each draws its own random numbers.
What computes uses all cores nevertheless, see usable().
"""

import os
from contextlib import ExitStack
from types import ModuleType
from typing import Any

CORES = 4


class _Cores(set[int]):
    """The cores that a process may use, as they are for code that hands them on; their len() is the one answer."""

    def __len__(self) -> int:
        return CORES


def usable() -> int:
    """The number of cores that this process may use, whatever is answered to programs."""
    return sum(1 for _ in os.sched_getaffinity(0))


def install(undo: ExitStack) -> None:
    """Answers, until `undo` is closed. In a process of `repro portable` it does so from its start."""
    if os.cpu_count is _answer:
        return
    own = os.sched_getaffinity
    _replace(undo, os, "sched_getaffinity", lambda process, /: _Cores(own(process)))
    for name in ("cpu_count", "process_cpu_count"):  # the latter since Python 3.13
        if hasattr(os, name):
            _replace(undo, os, name, _answer)


def answer_for_psutil(psutil: ModuleType) -> None:
    """Makes psutil answer likewise, until the end of the process."""
    psutil.cpu_count = _answer  # type: ignore[attr-defined]


def _answer(*_: Any, **__: Any) -> int:
    return CORES


def _replace(undo: ExitStack, owner: Any, name: str, value: Any) -> None:
    undo.callback(setattr, owner, name, getattr(owner, name))
    setattr(owner, name, value)
