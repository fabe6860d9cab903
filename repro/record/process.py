"""Processes of a command: started, ended, and what they said."""

import contextlib
import os
import re
import signal
import stat
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import psutil

from repro.containers.runtimes import ContainerRuntime
from repro.errors import UsageError
from repro.text import printable

GRACE = 30.0  # seconds to end after SIGTERM
TAIL = 20_000  # bytes at the end of what a process wrote
TRACEBACK = "Traceback (most recent call last):"
IGNORED = "Exception ignored in"  # Python's own words before the traceback of an error that ended nothing
EXCEPTION = re.compile(
    r"(\w+\.)*\w*(Error|Exception|Exit|Interrupt)(: |$)"
)  # as Python writes an error: ValueError: why
RANK_ERROR = re.compile(r"\[rank\d+\]: [\w.]+: \S")  # as PyTorch writes an error: [rank1]: ValueError: why
COLOUR = re.compile(r"\x1b\[[0-9;]*m")  # of a terminal
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def start(command: Sequence[str], **how: Any) -> subprocess.Popen[bytes]:
    """Starts a command. UsageError where there is no such program, or it is none."""
    try:
        return subprocess.Popen(command, **how)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise UsageError(
            f"the command {command[0]!r} cannot be started: {why}; see that it runs without repro"
        ) from None


def stop_as_interrupted() -> None:
    """Treats SIGTERM and SIGHUP as Ctrl-C from now on: what is known is kept, and what was started is ended.

    SIGHUP comes when the terminal is gone: what is still said goes nowhere, and is no error. Under nohup it is ignored.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, _hung_up)


def _hung_up(number: int, frame: FrameType | None) -> NoReturn:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        if stat.S_ISCHR(os.fstat(descriptor).st_mode):
            os.dup2(nowhere, descriptor)
    signal.default_int_handler(number, frame)


@contextlib.contextmanager
def interrupt_deferred() -> Iterator[None]:
    """Defers Ctrl-C and other stop signals while active, so that a process that was just started is known before."""
    ours = threading.current_thread() is threading.main_thread()
    handlers = {number: signal.getsignal(number) for number in STOPPING} if ours else {}
    deferred = {number: how for number, how in handlers.items() if how in (signal.default_int_handler, _hung_up)}
    came: list[int] = []
    for number in deferred:
        signal.signal(number, lambda number, _frame: came.append(number))
    try:
        yield
    finally:
        for number, handler in deferred.items():
            signal.signal(number, handler)
    if came:
        signal.raise_signal(came[0])


@contextlib.contextmanager
def limited_to_cores(count: int | None) -> Iterator[None]:
    """Limits what this thread starts while active to `count` cores; None: all usable cores."""
    usable = os.sched_getaffinity(0)
    try:
        if count is not None:
            os.sched_setaffinity(0, sorted(usable)[:count])
        yield
    finally:
        os.sched_setaffinity(0, usable)


def send(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Sends a signal to a process that leads a session, and to all of its group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def terminate(
    process: subprocess.Popen[bytes], number: signal.Signals, runtime: ContainerRuntime | None = None
) -> None:
    """Sends a signal to a process and all that it started, frozen or not, and sees to it that they end.

    A launcher such as torchrun may put its workers into sessions of their own, and a container runtime runs a container itself.
    A process that shares our session gets the signal alone, and what it started with it.
    """
    if runtime:
        runtime.end(number, GRACE)
    family = started_by(process.pid)
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:  # it has ended, or leads no group
        process.send_signal(number)
        for one in family:
            with contextlib.suppress(psutil.Error):
                one.send_signal(number)
    send(process, signal.SIGCONT)
    try:
        process.wait(timeout=GRACE)
    except subprocess.TimeoutExpired:
        pass
    finally:
        kill(process.pid, family)  # what ignores the signal, or outlives its parent
        process.kill()
        process.wait()


def started_by(process: int) -> list[psutil.Process]:
    """The processes that one has started, and those that these have."""
    try:
        return psutil.Process(process).children(recursive=True)
    except psutil.Error:
        return []


def kill(session: int, family: Sequence[psutil.Process]) -> None:
    """Ends a session, and what was started from it in others."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(session, signal.SIGKILL)
    for one in family:
        with contextlib.suppress(psutil.Error):
            one.kill()


def describe_exit(code: int) -> str:
    """Describes how a process ended."""
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"


def error_line(path: Path, since: int = 0) -> str:
    """The line of what a process wrote that says why it failed, as far as it can be shown.

    It is the first error of a rank (torchrun ends with a table, and other ranks fail because that one did), or else
    that of Python's last exception (a message may go on over many lines), or else the last line.
    """
    text = path.read_bytes()[since:][-TAIL:].decode(errors="replace")
    lines = COLOUR.sub("", text).strip().splitlines()
    ranks = [line for line in lines if RANK_ERROR.match(line)]
    line: str = printable((ranks[:1] or _exceptions(lines)[-1:] or lines[-1:] or [""])[0].strip())
    return line[:200]


def _exceptions(lines: Sequence[str]) -> list[str]:
    """The lines that name an exception: after a traceback, where lines are indented, or by a name that says so."""
    result: list[str] = []
    within = ignored = False
    for before, line in zip(["", *lines], lines, strict=False):
        if line.startswith(TRACEBACK):
            within, ignored = True, before.startswith(IGNORED)
        elif within and not line.startswith(" "):
            result += [] if ignored else [line]
            within = False
        elif EXCEPTION.match(line):
            result.append(line)
    return result
