"""Calls of uv, which builds the package, and reaches the package index."""

import subprocess
from pathlib import Path

import pytest

from support.runs import ROOT

UV = ROOT / ".venv" / "uv" / "bin" / "uv"
CONSTRAINTS = (f"--build-constraints={ROOT / 'requirements' / 'build.txt'}", "--require-hashes")


def succeed(*command: str | Path) -> None:
    """Runs a command that must end well."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def reach(*command: str | Path) -> None:
    """Runs a command of uv's that needs the package index; the test is skipped where that is out of reach."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and any(text in done.stderr for text in ("error sending request", "Failed to fetch", "offline")):
        pytest.skip(f"the package index cannot be reached: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stdout + done.stderr
