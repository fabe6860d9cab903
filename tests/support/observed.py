"""Scripts that run alone and observed.

Both must print the same, and the observer's lines say what was seen. The start of a framework takes longer than most
scripts: all that one pytest runs in an environment are forked from one Python, see tests/programs/forks.py.
"""

import atexit
import functools
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
IMPORTED = {"pytorch": ["torch", "torch._dynamo"], "jax": ["jax", "optax"], "tensorflow": ["keras"]}
"""What each environment's Python has imported before it runs scripts (PyTorch's optimizers import its compiler)."""


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
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=clean, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


class Forks:
    """An environment's Python whose imports are done, with the observer or without."""

    def __init__(self, framework: str, watched: bool) -> None:
        unused = Path(os.devnull) if watched else None  # each script has a folder of its own
        command = [interpreter(framework), str(PROGRAMS / "forks.py"), *IMPORTED[framework]]
        self.process = start(command, unused)
        atexit.register(self.process.communicate)

    def start(self, folder: Path | None, arguments: tuple[str, ...], env: dict[str, str]) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps([folder and str(folder), arguments, env]) + "\n")
        self.process.stdin.flush()

    def printed(self) -> str:
        """What the script printed; it must end well."""
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        code, output, errors = json.loads(line)
        assert code == 0, errors
        return str(output)


forks = functools.cache(Forks)


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
    by_itself, with_observer = start(command, None, **env), start(command, folder, **env)
    printed = ended(by_itself)
    assert ended(with_observer) == printed
    (written,) = lines(folder).values()
    return printed, written


def alone(framework: str, *arguments: str) -> str:
    """What a script of an environment prints without the observer."""
    own = forks(framework, False)
    own.start(None, arguments, {})
    return own.printed()


def watched(framework: str, folder: Path, *arguments: str, **env: str) -> tuple[str, list[dict[str, Any]]]:
    """What it prints with the observer, and the lines of the one process that wrote some. Variables come after the imports."""
    own = forks(framework, True)
    own.start(folder, arguments, env)
    printed = own.printed()
    (written,) = lines(folder).values()
    return printed, written


def watched_and_alone(framework: str, folder: Path, *arguments: str) -> tuple[str, list[dict[str, Any]]]:
    """The same of a script that prints what it prints without the observer."""
    printed, written = watched(framework, folder, *arguments)
    assert printed == alone(framework, *arguments)
    return printed, written
