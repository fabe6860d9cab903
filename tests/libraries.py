"""What the libraries of JAX and TensorFlow compute of library_cases.py, each in its environment, for the tests."""

import json
import os
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
from conftest import ROOT, SECONDS, needs


@cache
def library(framework: str, *arguments: str) -> dict[str, np.ndarray]:
    """Arrays by MODE/CASE/NAME, and `lines`; skips the test where the framework's environment is missing."""
    needs(framework)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "computed.npz"
        command = [str(ROOT / ".venv" / framework / "bin" / "python"), "-s", f"tests/{framework}_library.py", str(path)]
        env = os.environ | {"PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [*command, *arguments], cwd=ROOT, env=env, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        assert done.returncode == 0, done.stderr
        with np.load(path) as archive:
            return dict(archive)


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
