"""Interruptions of a definition: signal handlers, finalizers that the garbage collector calls, tracers and profilers.

Python runs them in the thread that they interrupt, where a flag says that operations are PyTorch's own. The flag is down
until they return, so what they compute is portable, too.
"""

import gc
import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from importlib import import_module
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

from repro.portable.compiler.pytorch import natively
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
    _install_tracers(undo)
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


# --- tracers and profilers --------------------------------------------------------------------------------------------


class _Tracer(_Handler):
    """A function of sys.settrace; what it returns traces the lines of one frame."""

    def __call__(self, *arguments: Any) -> Any:
        local = self.run(*arguments)
        return self if local is self.handler else _traced(local)


def _traced(function: Any) -> Any:
    """A tracer that takes the flag down; one that is compiled computes with no tensors."""
    return _Tracer(function) if isinstance(function, (FunctionType, MethodType)) else function


def _install_tracers(undo: ExitStack) -> None:
    for kind in ("trace", "profile"):
        _install_tracer(undo, kind)
    if sys.version_info >= (3, 12):
        register = sys.monitoring.register_callback
        replace(
            undo,
            sys.monitoring,
            "register_callback",
            lambda tool, event, function, /: _plain(register(tool, event, _traced(function))),
        )


def _install_tracer(undo: ExitStack, kind: str) -> None:
    own, known = getattr(sys, f"set{kind}"), getattr(sys, f"get{kind}")
    own(_traced(known()))
    undo.callback(lambda: own(_plain(known())))
    replace(undo, sys, f"set{kind}", lambda function, /: own(_traced(function)))
    replace(undo, sys, f"get{kind}", lambda: _plain(known()))


# --- the garbage collector --------------------------------------------------------------------------------------------


def _begin(phase: str, _: Any) -> None:
    """The first callback of a collection; it sees to it that the other one is the last."""
    if phase == "start":
        thread.before, thread.inside, thread.collector = thread.inside, False, natively.outside()
        thread.collector.__enter__()
        if gc.callbacks[-1] is not _end:
            gc.callbacks.remove(_end)
            gc.callbacks.append(_end)


def _end(phase: str, _: Any) -> None:
    if phase == "stop":
        thread.collector.__exit__(None, None, None)
        thread.inside, thread.collector = thread.before, nullcontext()
