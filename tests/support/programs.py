"""Programs of tests/programs under a framework's Python."""

import os
import subprocess
from pathlib import Path

from support.runs import HANG, PROGRAMS, ROOT, needs

ENVIRONMENT = {
    "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "OMP_WAIT_POLICY": "passive",  # threads that wait leave busy cores to others
}


def program(framework: str, name: str | Path, *arguments: str, **variables: str) -> str:
    """The output of a program of tests/programs, or of a path, with variables. It inherits none that decides what a framework computes."""
    needs(framework)
    python = str(ROOT / ".venv" / framework / "bin" / "python")
    env = {"PATH": os.environ["PATH"], **ENVIRONMENT, **variables}
    done = subprocess.run(
        [python, "-s", "-P", str(PROGRAMS / name), *arguments],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
