"""Ways to start one program under `repro portable`: each trains to the same bits."""

import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import zipapp
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from repro.verify.command_questions import SSE4, THREADS
from support.runs import HANG, PROGRAMS, ROOT, needs

pytestmark = pytest.mark.deep

PYTHON = str(ROOT / ".venv" / "pytorch" / "bin" / "python")
FOLDER = PROGRAMS / "ways"
FILE = str(FOLDER / "__main__.py")
CODE = (FOLDER / "__main__.py").read_text()


def output(words: list[str], folder: Path, stdin: str = "", **variables: str) -> str:
    """What a program under `repro portable` prints."""
    needs("pytorch")
    command = [sys.executable, "-m", "repro", "portable", "--", *words]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_WAIT_POLICY": "passive"} | variables
    done = subprocess.run(
        command, cwd=folder, env=environment, input=stdin, capture_output=True, text=True, timeout=HANG, check=False
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"^repro portable: [1-9][\d,]* operations ", done.stderr, re.MULTILINE), done.stderr
    return done.stdout


def weights(*given: Any, **more: Any) -> str:
    """What ways/__main__.py prints of its weights."""
    return re.findall(r"weights ([0-9a-f]{64})", output(*given, **more))[0]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> str:
    return weights([PYTHON, FILE], tmp_path_factory.mktemp("a file"), OMP_NUM_THREADS="1")


def as_module(folder: Path) -> list[str]:
    (folder / "ways").symlink_to(FOLDER)
    return [PYTHON, "-m", "ways"]


def as_zip(folder: Path) -> list[str]:
    zipapp.create_archive(FOLDER, folder / "ways.pyz")
    return [PYTHON, "ways.pyz"]


def as_script(folder: Path) -> list[str]:
    if " " in PYTHON:
        pytest.skip("the first line of a script names no path with a space")
    script = folder / "a script"
    script.write_text(f"#!{PYTHON}\n{CODE}")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return [str(script)]


WAYS: dict[str, Callable[[Path], list[str]]] = {
    "module": as_module,
    "zip file": as_zip,
    "spawned workers": lambda _: [PYTHON, FILE, "spawn"],
}
MORE: dict[str, Callable[[Path], list[str]]] = {
    "folder": lambda _: [PYTHON, str(FOLDER)],
    "script": as_script,
    "code": lambda _: [PYTHON, "-c", CODE],
    "shell": lambda _: ["sh", "-c", f'cd / && "{PYTHON}" "{FILE}" | cat'],
    "workers of a server": lambda _: [PYTHON, FILE, "forkserver"],
    "safe path": lambda _: [PYTHON, "-s", "-P", "-X", "dev", FILE],
}
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in MORE]


@pytest.mark.parametrize("way", [*WAYS, *SLOW])
def test_a_program_has_one_result_however_it_is_started(way: str, expected: str, tmp_path: Path) -> None:
    assert weights((WAYS | MORE)[way](tmp_path), tmp_path) == expected


@pytest.mark.slow
def test_a_program_from_standard_input_has_the_same(expected: str, tmp_path: Path) -> None:
    assert weights([PYTHON, "-"], tmp_path, stdin=CODE) == expected


def test_threads_and_instructions_change_nothing(expected: str, tmp_path: Path) -> None:
    variables = dict.fromkeys(THREADS, "4") | dict(SSE4)
    assert weights([PYTHON, FILE], tmp_path, **variables) == expected


def test_a_notebook_has_the_same(expected: str, tmp_path: Path) -> None:
    """Its kernel is a process of the environment of PyTorch, and takes Jupyter's packages from that of the tests."""
    packages = next((ROOT / ".venv" / "dev" / "lib").glob("python*/site-packages"))
    kernel = f"import sys; sys.path.append({str(packages)!r}); from ipykernel.kernelapp import launch_new_instance as run; run()"
    kernels = tmp_path / "kernels" / "pytorch"
    kernels.mkdir(parents=True)
    argv = [PYTHON, "-c", kernel, "-f", "{connection_file}"]
    (kernels / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "PyTorch", "language": "python"}))
    cell: dict[str, Any] = {
        "cell_type": "code",
        "execution_count": None,
        "id": "train",
        "metadata": {},
        "outputs": [],
        "source": CODE,
    }
    metadata = {"kernelspec": {"name": "pytorch", "display_name": "PyTorch", "language": "python"}}
    content = {"cells": [cell], "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "notebook.ipynb").write_text(json.dumps(content))
    execute = f"{shlex.quote(sys.executable)} -m jupyter execute --output=executed notebook.ipynb && cat executed.ipynb"
    assert weights(["sh", "-c", execute], tmp_path, JUPYTER_PATH=str(tmp_path)) == expected


@pytest.mark.slow
def test_operations_that_an_extension_calls_are_portable(tmp_path: Path) -> None:
    if not (shutil.which("g++") and shutil.which("ninja")):
        pytest.skip("no compiler: g++ and ninja")
    words = [PYTHON, str(FOLDER / "extension.py")]
    assert output(words, tmp_path, TORCH_EXTENSIONS_DIR=str(tmp_path)) == "same True\n"
