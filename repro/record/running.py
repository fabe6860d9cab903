"""A command that is run: in the foreground as if it had been called itself, or in the background, with its output in files."""

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from repro.containers.runtimes import ContainerRuntime
from repro.files import naming
from repro.record.process import error_line, interrupt_deferred, limited_to_cores, start, terminate

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
FROM_TERMINAL = (signal.SIGINT, signal.SIGQUIT)  # a terminal sends these to all that run in it

Watch = Callable[[subprocess.Popen[bytes]], bool]
"""Waits for the end of a process, or for a reason to stop it: True."""


@dataclasses.dataclass(frozen=True)
class Ended:
    """The end of a command: its exit code, and its errors."""

    code: int
    stopped: bool
    """True if there was a reason to stop it."""
    errors: Path
    """The file of stderr, behind what others wrote before."""
    since: int

    @property
    def stderr(self) -> str:
        """The command's part of stderr."""
        return self.errors.read_bytes()[self.since :].decode(errors="replace")

    @property
    def error(self) -> str:
        """The line of what it wrote that says why it failed."""
        return error_line(self.errors, self.since)


def in_background(
    command: Sequence[str],
    folder: Path,
    is_over: Watch | None = None,
    number: signal.Signals = signal.SIGTERM,
    runtime: ContainerRuntime | None = None,
    cores: int | None = None,
    **how: Any,
) -> Ended:
    """Runs a command until it ends, or is over: then it gets a signal, and all that it started is ended.

    What it prints is added to the files `stdout` and `stderr` in the folder.
    """
    errors = folder / "stderr"
    try:
        with naming(folder), open(folder / "stdout", "ab") as out, open(errors, "ab") as err:
            since = err.tell()
            how |= {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": err}
            with own_session(command, runtime, cores, **how) as process:
                stopped = is_over is not None and is_over(process)
                if stopped:
                    terminate(process, number, runtime)
                return Ended(process.wait(), stopped, errors, since)
    finally:
        if runtime:
            runtime.remove()
            runtime.settle()


def pass_through(
    command: Sequence[str],
    environment: Mapping[str, str],
    is_over: Watch | None = None,
    runtime: ContainerRuntime | None = None,
) -> int:
    """Runs a command as if it had been called itself: its input and output are ours, and so are signals to us.

    The exit code as a shell has it: 128 and the signal's number where it was killed.
    """
    with _forwarding() as receivers:
        process = start(command, env=environment)
        receivers.append(process)
        if is_over and is_over(process):
            terminate(process, signal.SIGTERM, runtime)
        code = process.wait()
    return code if code >= 0 else 128 - code


@contextlib.contextmanager
def _forwarding() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Forwards signals to the processes in the list while active."""
    receivers: list[subprocess.Popen[bytes]] = []

    def forward(number: int, _frame: FrameType | None) -> None:
        if number in FROM_TERMINAL and _in_foreground():
            return
        for process in receivers:
            process.send_signal(number)

    kept = {number: signal.getsignal(number) for number in FORWARDED}
    try:
        for number, handler in kept.items():
            if handler != signal.SIG_IGN:  # as under nohup; the command ignores it, too
                signal.signal(number, forward)
        yield receivers
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


def _in_foreground() -> bool:
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


@contextlib.contextmanager
def own_session(
    command: Sequence[str], runtime: ContainerRuntime | None = None, cores: int | None = None, **how: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """Starts a command in a session of its own, so that all that it starts can be ended with it.

    It is ended by an exception, and, by its guard, where this process dies.
    """
    path = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, sys.path)])
    with subprocess.Popen(
        [sys.executable, "-P", "-S", "-m", "repro.record.guard"],
        env=os.environ | {"PYTHONPATH": path},
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as guard:
        process = None
        try:
            with interrupt_deferred(), limited_to_cores(cores):
                process = start(command, start_new_session=True, **how)
            assert guard.stdin is not None
            with contextlib.suppress(OSError):  # without a guard the command runs as well
                guard.stdin.write(guarded(process.pid, runtime))
            yield process
        except BaseException:
            if process is not None:
                terminate(process, signal.SIGKILL, runtime)
            raise
        finally:
            guard.kill()
            for pipe in (process.stdout, process.stderr) if process else ():
                if pipe:
                    pipe.close()


def guarded(process: int, runtime: ContainerRuntime | None) -> bytes:
    """Facts that a guard needs of a command, as a line of JSON."""
    known: dict[str, Any] = {"process": process}
    if runtime:
        known["container"] = dataclasses.asdict(runtime.container)
        known |= {"environment": dict(runtime.environment), "label": runtime.label}
    return json.dumps(known).encode() + b"\n"
