"""Guard of a command, which ends it where its starter dies.

A process of its own, started by running.own_session(), which kills it when the command has ended. As long as the starter
lives, it holds the other end of the pipe: what is read there ends when the starter does, even by SIGKILL.
"""

import json
import os
import signal
import sys

import msgspec
import psutil

from repro.containers.command_line import Container
from repro.containers.runtimes import ContainerRuntime
from repro.record.process import GRACE, kill, started_by


def main() -> None:
    """Waits for the end of the starter, then ends the command."""
    command = json.loads(sys.stdin.buffer.readline())
    number = command["process"]
    session = psutil.Process(number)
    os.chdir("/")  # it keeps no folder in use; and the starter sees that it knows the command
    sys.stdin.buffer.read()
    if "container" in command:
        container = msgspec.convert(command["container"], Container)
        runtime = ContainerRuntime(container, command["environment"], command["label"])
        runtime.end(signal.SIGKILL, GRACE)
        runtime.remove()
    if session.is_running():  # no other process has its number by now
        kill(number, started_by(number))


if __name__ == "__main__":
    main()
