"""Starts the ranks of a run on this machine, and ends them all when one fails: `params.ranks=N`."""

import ctypes
import importlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from repro.errors import ReproError
from repro.ranks import Place

ERRORS = "REPRO_RANK_ERRORS"
"""The folder where a rank leaves its error for whoever started it, which shows one for all."""
LOST = "lost another rank"
ENDED = (signal.SIGTERM, signal.SIGABRT)  # how ranks end when another one has: by torchrun's hand, or by JAX'
PR_SET_PDEATHSIG = 1  # <linux/prctl.h>


def start(task: str, size: int, arguments: list[str]) -> int:
    """Runs `python -m repro ARGUMENTS` in so many processes; 0, or the exit code of the rank that failed.

    ReproError where a rank was killed. PyTorch's are started by torchrun.
    """
    with tempfile.TemporaryDirectory(prefix="repro-ranks-") as folder:
        program = ["env", f"{ERRORS}={folder}", *command(arguments)]  # for the ranks alone, whoever starts them
        port = os.environ.get("MASTER_PORT")
        if task == "pytorch":
            failed = importlib.import_module("mnist_pytorch_ranks").torchrun(size, program, port)
        else:
            failed = _processes(size, program, int(port) if port else free_port(size))
        return _told(failed, {int(path.name): path.read_text() for path in Path(folder).iterdir()})


def command(arguments: list[str]) -> list[str]:
    """A rank's, as run.sh has it."""
    return [sys.executable, "-P", "-s", "-m", "repro", *arguments]


def _told(failed: dict[int, int], errors: dict[int, str]) -> int:
    """Prints one error for all ranks that failed, given their exit codes (below 0: signals): the first cause's."""
    if not failed:
        return 0
    for rank, code in failed.items():
        if code < 0 and -code not in ENDED and rank not in errors:
            raise ReproError(
                f"ranks: rank {rank} was killed by {signal.Signals(-code).name}, so the others were ended; "
                "params.resume=auto goes on from the last checkpoint"
            )
    causes = {rank: text for rank, text in sorted(errors.items()) if LOST not in text} or errors
    if not causes:
        raise ReproError(f"ranks: ended with the exit codes {failed} and said nothing (rank: code)")
    rank = next(iter(causes))
    print(causes[rank], file=sys.stderr)
    return failed.get(rank, 1)


def free_port(count: int) -> int:
    """The first of so many neighbouring ports of 127.0.0.1 that nobody listens on."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            first = probe.getsockname()[1]
        if all(_is_free(port) for port in range(first, first + count)):
            return first


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        return port < 2**16 and probe.connect_ex(("127.0.0.1", port)) != 0


def _processes(size: int, command: list[str], port: int) -> dict[int, int]:
    """One process for each rank, until all have ended or one has failed; the exit codes of those that failed."""
    places = [Place(rank, size, ("127.0.0.1",), port, rank) for rank in range(size)]
    running = {p.rank: subprocess.Popen(command, env=os.environ | p.variables()) for p in places}
    try:
        while None in (codes := [process.poll() for process in running.values()]):
            if any(codes):
                time.sleep(1)  # for the others to say what they saw
                break
            time.sleep(0.05)
        return {rank: process.returncode for rank, process in running.items() if process.poll()}
    finally:
        for process in running.values():
            process.kill()
            process.wait()


def end_with_launcher() -> None:
    """Has the kernel end this process, a rank, when start() ends, even by SIGKILL."""
    if ERRORS in os.environ:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def leave_error(text: str) -> None:
    """Says why this process fails: to start(), where it is a rank of its, or else on stderr."""
    if ERRORS in os.environ and "RANK" in os.environ:
        (Path(os.environ[ERRORS]) / os.environ["RANK"]).write_text(text)
    else:
        print(text, file=sys.stderr, flush=True)
