"""Scripts that run alone and observed.

Both must print the same, and the observer's lines say what was seen.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from repro.machine.variables import DECIDING
from support.runs import HANG, PROGRAMS, ROOT

SITE = ROOT / "repro" / "inject" / "site"
SCRIPTS = PROGRAMS / "observed"
HERE = sys.executable


def interpreter(framework: str) -> str:
    python = ROOT / ".venv" / framework / "bin" / "python"
    if not python.exists():
        pytest.skip(f"no environment .venv/{framework}; make it with: requirements/install.sh {framework}")
    return str(python)


def start(command: list[str], folder: Path | None, **env: str) -> subprocess.Popen[str]:
    """Starts a command with the observer, which writes into this folder, or without."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(DECIDING)}
    clean |= {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1", "PYTHONPATH": str(ROOT)}
    clean |= {"OMP_WAIT_POLICY": "passive"} | env  # threads that wait leave busy cores to others
    if folder is not None:
        clean["REPRO_OBSERVE"] = str(folder)
        clean["PYTHONPATH"] = f"{SITE}{os.pathsep}{clean['PYTHONPATH']}"
    return subprocess.Popen(command, env=clean, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen[str]) -> str:
    """Waits for the end, which must be without an error; returns what was printed."""
    printed, errors = process.communicate(timeout=HANG)
    assert process.returncode == 0, errors
    return printed


def lines(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The lines of each process, by the name of its file."""
    return {
        path.stem: [json.loads(line) for line in path.read_text().splitlines()]
        for path in sorted((folder / "steps").glob("*.jsonl"))
    }


def steps(written: list[dict[str, Any]]) -> dict[int, dict[str, dict[str, str]]]:
    """The hashes of each step by its number, which none has twice."""
    pairs = [(line["step"], line["hashes"]) for line in written if line["kind"] == "step"]
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


def notes(written: list[dict[str, Any]]) -> list[str]:
    return [line["text"] for line in written if line["kind"] == "note"]


def observed(python: str, folder: Path, *arguments: str, **env: str) -> tuple[str, list[dict[str, Any]]]:
    """Runs a script alone and observed, with the same output; returns that, and the lines of the process that wrote some."""
    command = [python, *arguments]
    alone, watched = start(command, None, **env), start(command, folder, **env)
    printed = ended(alone)
    assert ended(watched) == printed
    (written,) = lines(folder).values()
    return printed, written
