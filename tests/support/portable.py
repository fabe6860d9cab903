"""`repro` with stand-ins for PyTorch and for its portable numerics, so that a process starts at once."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.runs import HANG, PROGRAMS, ROOT

STUB = PROGRAMS / "portable_stub"
Done = subprocess.CompletedProcess[str]


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder, with a space in its name, of the package with the stand-in."""
    folder = tmp_path_factory.mktemp("a tree")
    shutil.copytree(ROOT / "repro", folder / "repro", ignore=shutil.ignore_patterns("__pycache__"))
    for framework in ("pytorch", "tensorflow", "jax"):
        mode = folder / "repro" / "portable" / "modes" / framework
        shutil.rmtree(mode)
        shutil.copy(STUB / "library.py", mode.with_suffix(".py"))
    return folder


def started(tree: Path, *words: str, path: str = "", threads: str = "", **how: Any) -> subprocess.Popen[str]:
    """`repro WORDS` of a folder; Python's path is `path` in the command, and the stand-in's with a folder of it."""
    code = f"import sys; sys.path.insert(0, {str(tree)!r}); from repro.__main__ import command; command()"
    environment = os.environ | {"PYTHONPATH": path if tree == ROOT else f"{STUB}:{path}"}
    environment |= {"OMP_NUM_THREADS": threads} if threads else {}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-c", code, *words], env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True, **how
    )


def ended(process: subprocess.Popen[str], stdin: str = "", seconds: float = HANG) -> Done:
    """Waits for the end; returns what was printed, and the exit code."""
    out, errors = process.communicate(stdin, timeout=seconds)
    return Done(process.args, process.returncode, out, errors)
