"""Interruptions of a definition: signal handlers, and finalizers that the garbage collector calls.

Python runs both in the thread that they interrupt, where a flag says that operations are PyTorch's own. The flag is down
until they return, so what they compute is portable, too.
"""

import gc
import signal
from collections.abc import Callable
from contextlib import ExitStack
from importlib import import_module
from types import BuiltinFunctionType
from typing import Any

from repro.portable.modes.pytorch.dispatcher.compilers import replace
from repro.portable.modes.pytorch.dispatcher.dispatch import thread, with_portable_ops

_signal = import_module("_signal")
"""The module in C that `signal` calls by name: a function that was imported from there calls it, too."""


def install(undo: ExitStack) -> None:
    """Takes the flag down for handlers and finalizers, until `undo` is closed."""
    own, known = _signal.signal, _signal.getsignal

    def register(number: int, handler: Any, /) -> Any:
        return _plain(own(number, _portable(handler)))

    replace(undo, _signal, "signal", register)
    replace(undo, _signal, "getsignal", lambda number, /: _plain(known(number)))
    _exchange(own, known, _portable)
    undo.callback(_exchange, own, known, _plain)
    for callback in (_begin, _end):
        undo.callback(gc.callbacks.remove, callback)
    gc.callbacks.insert(0, _begin)
    gc.callbacks.append(_end)


# --- signals ----------------------------------------------------------------------------------------------------------


class _Handler:
    """A handler of signals whose operations are portable."""

    def __init__(self, handler: Callable[..., Any]) -> None:
        self.handler = handler
        self.run = with_portable_ops(handler)

    def __call__(self, *arguments: Any) -> Any:
        return self.run(*arguments)


def _portable(handler: Any) -> Any:
    """A handler that takes the flag down; not of Python's own, nor of SIG_IGN and SIG_DFL, which compute nothing."""
    compute = callable(handler) and not isinstance(handler, (_Handler, BuiltinFunctionType))
    return _Handler(handler) if compute else handler


def _plain(handler: Any) -> Any:
    return handler.handler if isinstance(handler, _Handler) else handler


def _exchange(own: Callable[..., Any], known: Callable[..., Any], form: Callable[[Any], Any]) -> None:
    """Gives the handlers that there are another form; only the main thread may."""
    for number in signal.valid_signals():
        handler = known(number)
        if form(handler) is not handler:
            try:
                own(number, form(handler))
            except ValueError:
                return


# --- the garbage collector --------------------------------------------------------------------------------------------


def _begin(phase: str, _: Any) -> None:
    """The first callback of a collection; it sees to it that the other one is the last."""
    if phase == "start":
        thread.before, thread.inside = thread.inside, False
        if gc.callbacks[-1] is not _end:
            gc.callbacks.remove(_end)
            gc.callbacks.append(_end)


def _end(phase: str, _: Any) -> None:
    if phase == "stop":
        thread.inside = thread.before
