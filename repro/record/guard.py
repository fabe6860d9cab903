"""Guard of a command, which ends it where its starter dies.

A process of its own, started by process.own_session(), which kills it when the command has ended. As long as the starter
lives, it holds the other end of the pipe: what is read there ends when the starter does, even by SIGKILL.
"""

import pickle
import signal
import sys

import psutil

from repro.record.process import GRACE, kill, started_by


def main() -> None:
    """Waits for the end of the starter, then ends the command."""
    number, runtime = pickle.load(sys.stdin.buffer)
    session = psutil.Process(number)
    sys.stdin.buffer.read()
    if runtime:
        runtime.end(signal.SIGKILL, GRACE)
        runtime.remove()
    if session.is_running():  # no other process has its number by now
        kill(number, started_by(number))


if __name__ == "__main__":
    main()
