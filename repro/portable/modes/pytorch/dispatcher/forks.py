"""Forks of a process that computed with several threads.

GNU's OpenMP keeps its threads for the next operation. A child has none of them and would wait for them without end, with
PyTorch's own operations as with kernels. So they end before a fork; parent and child start new ones when they need them.
"""

import os
from contextlib import ExitStack, suppress
from functools import cache

import torch

from repro.portable.kernels.pytorch.threads import gnu_openmp

SOFT = 1
"""omp_pause_soft: settings stay."""
_on = False


def install(undo: ExitStack) -> None:
    """Makes forks safe, until `undo` is closed."""
    _register()
    undo.callback(_switch, _on)
    _switch(True)


def _switch(on: bool) -> None:
    global _on
    _on = on


@cache
def _register() -> None:
    """Makes Python call these at each fork, which cannot be undone."""
    os.register_at_fork(before=_end_threads, after_in_child=_begin)


def _end_threads() -> None:
    library = gnu_openmp() if _on else None
    if library is not None:
        with suppress(AttributeError):  # before OpenMP 5
            library.omp_pause_resource_all(SOFT)


def _begin() -> None:
    """Makes PyTorch create its own pool again: new threads of OpenMP would all do so at once, and collide."""
    if _on:
        torch._C.set_num_threads(torch._C.get_num_threads())
