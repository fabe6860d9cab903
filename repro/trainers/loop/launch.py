"""Processes of ranks on this machine: start, watch, errors."""

import ctypes
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from repro.errors import ReproError
from repro.trainers.loop.ranks import LOOPBACK, RankInfo

ERRORS = "REPRO_RANK_ERRORS"
"""The variable with the folder of the ranks' errors, R.error, and of what frameworks write to stderr, R.stderr."""
ERROR, STDERR = ".error", ".stderr"
LOST = "lost another rank"
ABORTED = re.compile("another task died|gloo::EnforceNotMet")  # by JAX, where another rank is gone
RESUME = "params.resume=auto goes on from the last checkpoint"
FROM_OUTSIDE = ("SIGKILL", "SIGTERM")
PR_SET_PDEATHSIG = 1  # <linux/prctl.h>

Starter = Callable[[int, list[str], str | None], dict[int, int]]
"""Runs a command in n ranks that meet at a port; the exit codes of those that failed, below 0 for signals."""


def start(size: int, arguments: list[str], starter: Starter) -> int:
    """Runs `python -m repro ARGUMENTS` in n ranks on this machine; 0, or the exit code of the rank that failed.

    ReproError where a rank was killed, which ends the others.
    """
    with tempfile.TemporaryDirectory(prefix="repro-ranks-") as folder:
        return _reported(starter(size, command(folder, arguments), os.environ.get("MASTER_PORT")), folder)


def watch(rank_info: RankInfo, arguments: list[str]) -> int:
    """Runs one rank in a child of the process that Slurm or another launcher started; its exit code.

    The parent then reports how it ended. ReproError where it was killed.
    """
    with tempfile.TemporaryDirectory(prefix="repro-rank-") as folder:
        return _reported(_processes([rank_info], command(folder, arguments)), folder)


def command(folder: str, arguments: list[str]) -> list[str]:
    """A rank's command, as in run.sh, with the folder for its errors."""
    return ["env", f"{ERRORS}={folder}", sys.executable, "-P", "-s", "-m", "repro", *arguments]


def _reported(failed: dict[int, int], folder: str) -> int:
    """Prints the error of the rank that failed first, for all ranks; its exit code, of those that failed.

    What a framework wrote is shown where nothing else has the cause. ReproError where that is a signal, or unknown.
    """
    if not failed:
        return 0
    errors, written = _left(folder, ERROR), _left(folder, STDERR)
    for rank, code in failed.items():
        if code == -signal.SIGABRT and (said := ABORTED.search(written.get(rank, ""))):
            why = f"JAX aborted it: {said[0]}"
            errors[rank] = f"error: ranks: rank {rank} {LOST} ({why}); see what the other ranks say; {RESUME}"
    causes = {rank: text for rank, text in errors.items() if LOST not in text}
    killed = {rank: signal.Signals(-code).name for rank, code in failed.items() if code < 0 and rank not in errors}
    first = sorted(killed.items(), key=lambda item: item[1] == "SIGTERM")  # by which torchrun ends the others
    for rank, name in first if not causes else ():
        if name not in FROM_OUTSIDE:
            print(written.get(rank, "").rstrip(), file=sys.stderr)
        raise ReproError(f"ranks: rank {rank} was killed by {name}, which ends the others; {RESUME}")
    for rank, text in (causes or errors).items():
        print(text, file=sys.stderr)
        return max(1, failed.get(rank, 1))
    raise ReproError(f"ranks: ended with the exit codes {failed} and said nothing (rank: code)")


def _left(folder: str, suffix: str) -> dict[int, str]:
    """The content of the ranks' files with this suffix."""
    return {int(path.stem): path.read_text(errors="replace") for path in sorted(Path(folder).glob(f"*{suffix}"))}


def free_port(count: int) -> int:
    """The first of `count` neighboring free ports of 127.0.0.1."""
    while True:
        with socket.socket() as probe:
            probe.bind((LOOPBACK, 0))
            first = probe.getsockname()[1]
        if all(_is_free(port) for port in range(first, first + count)):
            return first


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        return port < 2**16 and probe.connect_ex((LOOPBACK, port)) != 0


def processes(size: int, command: list[str], port: str | None) -> dict[int, int]:
    """The starter for frameworks that have none of their own."""
    first = int(port) if port else free_port(size)
    return _processes([RankInfo(rank, size, (LOOPBACK,), first, rank) for rank in range(size)], command)


def _processes(ranks: list[RankInfo], command: list[str]) -> dict[int, int]:
    """Runs a process for each rank, until all have ended or one has failed; the exit codes of those that failed."""
    running = {each.rank: subprocess.Popen(command, env=os.environ | each.variables()) for each in ranks}
    try:
        while None in (codes := [process.poll() for process in running.values()]):
            if any(codes):
                if min(code or 0 for code in codes) >= 0:
                    time.sleep(1)  # for the others to say what they saw; of one that was killed they know no more
                break
            time.sleep(0.05)
        return {rank: process.returncode for rank, process in running.items() if process.poll()}
    finally:
        for process in running.values():
            process.kill()
            process.wait()


def started() -> bool:
    """True if start() or watch() started this process."""
    return ERRORS in os.environ


def join_launcher() -> None:
    """Ties a rank to its parent: it ends with it, even by SIGKILL, and its framework's messages go to a file.

    Python goes on writing to stderr. Native code's output there, such as the trace of an abort, is moved.
    """
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    sys.stderr = os.fdopen(os.dup(2), "w", buffering=1)
    with open(_own(STDERR), "ab") as file:
        os.dup2(file.fileno(), 2)


def leave_error(text: str) -> None:
    """Reports why this process fails: to its parent, where it is a rank, or else on stderr."""
    if started():
        _own(ERROR).write_text(text)
    else:
        print(text, file=sys.stderr, flush=True)


def _own(suffix: str) -> Path:
    return Path(os.environ[ERRORS]) / (os.environ["RANK"] + suffix)
