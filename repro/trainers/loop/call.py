"""Calls of `./run.sh`, as a user makes them."""

import os
import re
import signal
import subprocess
from pathlib import Path

from repro.machine.facts import ROOT

SET_BY_RUN_SH = ("PYTHONPATH", "PYTHONNOUSERSITE", "PYTHONHASHSEED", "KERAS_HOME", "WORKSPACE_PATH")


def run_sh(task: str, workspace: Path, *overrides: str) -> subprocess.CompletedProcess[str]:
    """Runs `./run.sh TASK --workspace=WORKSPACE OVERRIDES` to its end, in an environment as a user's."""
    command = [str(ROOT / "run.sh"), task, f"--workspace={workspace}", *overrides]
    own = callers_environment(workspace / "cache")
    return subprocess.run(command, env=own, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


def said_of(failed: subprocess.CompletedProcess[str]) -> str:
    """The reason that a process failed: the last line of its errors."""
    return error_line(failed.stderr, failed.returncode)


def error_line(stderr: str, code: int) -> str:
    lines = re.sub(r"\x1b\[[0-9;]*m", "", stderr).strip().splitlines()  # engines print colours, always
    said = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    died = [f"killed by {signal.Signals(-code).name}"] if code < 0 else []
    return (said or died or lines or [f"it ended with {code}"])[-1][:300]


def callers_environment(cache: Path) -> dict[str, str]:
    """This process's environment, without what run.sh has set in it, and with a cache of its own.

    An empty one holds no program that another run compiled.
    """
    kept = {name: value for name, value in os.environ.items() if name not in SET_BY_RUN_SH}
    return kept | {"XDG_CACHE_HOME": str(cache)}


def quoted(value: str) -> str:
    """A value as Hydra reads it, whatever characters it holds: a backslash counts only before a quote."""
    return '"' + re.sub(r'(\\*)("|$)', lambda found: found[1] * 2 + ("\\" + '"' if found[2] else ""), value) + '"'
