"""Remedies in somebody else's process: what they change there, and that a process ends where one cannot start."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.observed import SITE

TORCH = """
import types
seed, strict = None, False
def manual_seed(number):
    global seed
    seed = number
def use_deterministic_algorithms(mode):
    global strict
    strict = mode
backends = types.SimpleNamespace(cudnn=types.SimpleNamespace(benchmark=True))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a package `torch` that has what the remedies call, and some data."""
    (tmp_path / "torch" / "utils").mkdir(parents=True)
    (tmp_path / "torch" / "__init__.py").write_text(TORCH)
    (tmp_path / "torch" / "utils" / "deterministic.py").write_text("fill_uninitialized_memory = True")
    for name in ("b", "c", "a", "d"):
        (tmp_path / "data" / name).mkdir(parents=True)
    return tmp_path


def run(folder: Path, remedies: str, code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(map(str, [SITE, folder]))
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path, "REPRO_REMEDIES": remedies} | variables,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_deterministic_mode(folder: Path) -> None:
    code = "import torch, torch.utils.deterministic as d; print(torch.strict, torch.backends.cudnn.benchmark, d.fill_uninitialized_memory)"
    assert run(folder, "deterministic", code).stdout == "True False False\n"


def test_sorted_listings(folder: Path) -> None:
    """... also of what gives them in reverse order, as the question `file_order` does."""
    code = """if True:
        import glob, os, pathlib
        print(os.listdir("data"), sorted(os.listdir()) == os.listdir(), os.listdir(b"data")[0])
        print([p.name for p in pathlib.Path("data").iterdir()], [p[-1] for p in glob.glob("data/*")], next(os.walk("data"))[1])
        with os.scandir("data") as entries: print([entry.name for entry in entries])
    """
    names = str(["a", "b", "c", "d"])
    (folder / "record" / "steps").mkdir(parents=True)
    for variables in ({}, {"REPRO_LISTINGS": "reversed", "REPRO_OBSERVE": str(folder / "record")}):
        done = run(folder, "sorted_listings", code, **variables)
        assert done.stdout == f"{names} True b'a'\n{names} {names} {names}\n{names}\n", done.stderr


@pytest.mark.parametrize(
    ("remedies", "code", "said"),
    [
        (
            "deterministic",
            "import torch",
            "repro: this process ends, because a remedy cannot be started in it: not this one\n",
        ),
        ("no_such", "pass", "repro: this process is WITHOUT ITS REMEDIES, and ends: 'no_such'\n"),
    ],
)
def test_a_process_ends_where_a_remedy_cannot_be_had(remedies: str, code: str, said: str, folder: Path) -> None:
    broken = TORCH.replace("    global strict\n", "    raise RuntimeError('not this one')\n")
    (folder / "torch" / "__init__.py").write_text(broken)
    done = run(folder, remedies, f"{code}; print('went on')")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", said)
