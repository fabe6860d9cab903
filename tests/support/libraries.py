"""What the libraries of JAX and TensorFlow compute of library_cases.py, each in its environment, for the tests."""

import json
import os
import subprocess
from functools import cache
from pathlib import Path

import numpy as np

from support.runs import ROOT, SECONDS, alone, needs


@cache
def library(framework: str, *arguments: str) -> dict[str, np.ndarray]:
    """Arrays by MODE/CASE/NAME, and `lines`; skips the test where the framework's environment is missing."""
    needs(framework)
    with alone("-".join((framework, "library", *arguments))) as place:  # two files of tests compare with JAX'
        path = place.with_suffix(".npz")
        if not path.exists():
            _compute(framework, path, arguments)
    with np.load(path) as archive:
        return dict(archive)


def _compute(framework: str, path: Path, arguments: tuple[str, ...]) -> None:
    command = [
        str(ROOT / ".venv" / framework / "bin" / "python"),
        "-s",
        f"tests/programs/{framework}_library.py",
        str(path),
    ]
    env = os.environ | {
        "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        [*command, str(path), *arguments],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def lines(framework: str) -> dict[str, str]:
    """By which something was refused."""
    return json.loads(str(library(framework)["lines"]))


def assert_same(found: dict[str, np.ndarray], mode: str, expected: dict[str, np.ndarray], case: str) -> None:
    """Equal bits of a case in a mode, and compiled in what is expected."""
    names = [name for name in expected if name.startswith(f"compiled/{case}/")]
    assert names and len(names) == sum(name.startswith(f"{mode}/{case}/") for name in found)
    for name in names:
        array = found[name.replace("compiled", mode, 1)]
        assert array.dtype == expected[name].dtype and array.shape == expected[name].shape
        assert array.tobytes() == expected[name].tobytes(), name
