"""The guard of a command. commands/test_verify_ends.py kills the starter of one."""

import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from repro.containers.runtimes import ContainerRuntime
from repro.record import guard
from repro.record.process import stop_as_interrupted
from repro.record.running import guarded, own_session
from support import commands
from support.runs import HANG


def test_a_container_is_ended_with_its_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log"
    commands.program(
        tmp_path / "bin",
        "docker",
        f"open({str(log)!r}, 'a').write(' '.join(words) + '\\n')\nif words[0] == 'ps' and len(words) == 4: print('one')",
    )
    variables = {"PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    runtime = ContainerRuntime(commands.container("docker run i"), variables)
    with subprocess.Popen(["sleep", str(HANG)], start_new_session=True) as process:
        text = io.TextIOWrapper(io.BytesIO(guarded(process.pid, runtime)))  # and then the end of the pipe
        monkeypatch.setattr(sys, "stdin", text)
        monkeypatch.chdir(tmp_path)  # and back: the guard leaves its folder
        guard.main()
        assert process.wait(timeout=HANG) == -signal.SIGKILL
    assert "kill one" in log.read_text().splitlines()


def test_a_guard_leaves_with_its_command() -> None:
    with own_session(["cat"], stdin=subprocess.PIPE) as process:
        guards = [child for child in psutil.Process().children() if "repro.record.guard" in child.cmdline()]
        process.communicate()
        assert process.returncode == 0 and guards
    assert not any(child.is_running() for child in guards)


def test_under_nohup_a_lost_connection_is_ignored() -> None:
    numbers = (signal.SIGHUP, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        for how in (signal.SIG_IGN, signal.SIG_DFL):
            signal.signal(signal.SIGHUP, how)
            stop_as_interrupted()
            assert (signal.getsignal(signal.SIGHUP) == signal.SIG_IGN) == (how == signal.SIG_IGN)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
