"""The callbacks of docs/reference/publishing.md, in real trainings: a tracker holds the fingerprint of the last weights.

They need libraries that no environment of this project has. CALLBACKS_PYTHON names the Pythons of environments that have
them, with a colon between two; the tests of a missing library are skipped.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

from support.runs import HANG, PROGRAMS, ROOT

FOLDER = PROGRAMS / "callbacks"
LIBRARIES = {"trainer": ("transformers", "accelerate"), "lightning": ("lightning",), "keras": ("keras", "tensorflow")}
TRACKERS = ("wandb", "mlflow", "tensorboard")
PAGE = (ROOT / "docs" / "reference" / "publishing.md").read_text()


def python_with(*packages: str) -> str:
    """A Python that has all of these packages; else the test is skipped."""
    script = "import importlib.util, sys; sys.exit(not all(map(importlib.util.find_spec, sys.argv[1:])))"
    pythons = [python for python in os.environ.get("CALLBACKS_PYTHON", "").split(":") if python]
    for python in pythons:
        if subprocess.run([python, "-c", script, *packages], check=False).returncode == 0:
            return python
    pytest.skip(f"no Python in CALLBACKS_PYTHON has {', '.join(packages)}")


@pytest.mark.slow
@pytest.mark.parametrize("tracker", TRACKERS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_tracker_holds_the_fingerprint_of_the_last_weights(library: str, tracker: str, tmp_path: Path) -> None:
    python = python_with(*LIBRARIES[library], tracker)

    def last_line(program: str) -> str:
        command = [python, str(FOLDER / program), tracker, str(tmp_path)]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=HANG, check=False
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout.splitlines()[-1]

    trained = last_line(f"with_{library}.py")
    assert re.fullmatch("sha256:[0-9a-f]{64}", trained)
    assert last_line("trackers.py") == trained


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_page_shows_the_callbacks_that_were_tried(library: str) -> None:
    program = (FOLDER / f"with_{library}.py").read_text()
    callbacks = re.findall(r"^class \w+Fingerprint\(.*\):\n(?: {4}.*\n){2}", program, re.MULTILINE)
    assert len(callbacks) == len(TRACKERS)
    for callback in callbacks:
        assert callback in PAGE
